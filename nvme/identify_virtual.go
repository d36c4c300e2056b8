package nvme

import "structs"

// PrimaryControllerCapabilities is the Primary Controller Capabilities
// Structure, 4096 bytes (Base Specification 2.1, figure "Identify – Primary
// Controller Capabilities Structure"; CNS 14h). VQ are queue resources, VI
// interrupt resources.
type PrimaryControllerCapabilities struct {
	_      structs.HostLayout
	CNTLID uint16 // controller ID of the primary controller
	PORTID uint16 // subsystem port
	CRT    uint8  // resource types: bit 0 VQ, bit 1 VI
	_      [27]byte
	VQ     FlexibleResources
	_      [16]byte
	VI     FlexibleResources
	_      [4016]byte
}

// FlexibleResources describes one kind of controller resources, 16 bytes.
type FlexibleResources struct {
	_                    structs.HostLayout
	FlexibleTotal        uint32 // flexible resources of the primary and its secondary controllers
	FlexibleAssigned     uint32 // assigned to secondary controllers
	FlexiblePrimary      uint16 // allocated to the primary controller
	PrivateTotal         uint16 // private resources of the primary controller
	SecondaryMaximum     uint16 // most that a secondary controller may have
	PreferredGranularity uint16 // preferred unit of assignment
}

// AppendBinary appends the 4096 bytes of the structure.
func (c *PrimaryControllerCapabilities) AppendBinary(b []byte) ([]byte, error) { return encode(b, c) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (c *PrimaryControllerCapabilities) UnmarshalBinary(b []byte) error {
	return decode("primary controller capabilities", b, c)
}

// SecondaryControllerList is the Secondary Controller List, 4096 bytes (figure
// of that name; CNS 15h).
type SecondaryControllerList struct {
	_      structs.HostLayout
	NUMENT uint8 // entries in use, at most 127
	_      [31]byte
	Items  [127]SecondaryController
}

// SecondaryController is a Secondary Controller Entry, 32 bytes.
type SecondaryController struct {
	_    structs.HostLayout
	SCID uint16 // controller ID of the secondary controller
	PCID uint16 // controller ID of its primary controller
	SCS  uint8  // state: bit 0 online
	_    [3]byte
	VFN  uint16 // virtual function number; 0 for none
	NVQ  uint16 // VQ flexible resources assigned
	NVI  uint16 // VI flexible resources assigned
	_    [18]byte
}

// AppendBinary appends the 4096 bytes of the structure.
func (l *SecondaryControllerList) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *SecondaryControllerList) UnmarshalBinary(b []byte) error {
	if err := decode("secondary controller list", b, l); err != nil {
		return err
	}
	return checkCount("secondary controller list", int(l.NUMENT), len(l.Items))
}

// Entries returns the entries in use.
func (l *SecondaryControllerList) Entries() []SecondaryController {
	return l.Items[:min(int(l.NUMENT), len(l.Items))]
}
