package nvme

import (
	"bytes"
	"encoding/binary"
	"structs"
)

// LockdownLog is the Command and Feature Lockdown log page, 512 bytes (Base
// Specification 2.1, figure of that name).
type LockdownLog struct {
	_      structs.HostLayout
	CFILA  uint8 // contents in 5:4, scope in 3:0; see LockdownLSP
	_      [2]byte
	Length uint8      // bytes of the list in use
	CFIL   [508]uint8 // opcodes or feature identifiers, rising
}

// Scopes and contents of the lockdown log, for LockdownLSP, and scopes of the
// Lockdown command.
const (
	LockdownScopeAdmin    uint8 = 0 // admin command opcodes
	LockdownScopeFeatures uint8 = 2 // feature identifiers
	LockdownScopeMI       uint8 = 3 // management interface opcodes
	LockdownScopePCIe     uint8 = 4 // PCIe command set opcodes

	LockdownProhibitable      uint8 = 0 // able to be prohibited
	LockdownProhibitedAdmin   uint8 = 1 // prohibited on the admin queue
	LockdownProhibitedOutBand uint8 = 2 // prohibited on a management endpoint
)

// LockdownLSP returns the log specific parameter that selects a list.
func LockdownLSP(scope, contents uint8) uint8 { return scope&0xf | (contents&3)<<4 }

// AppendBinary appends the 512 bytes of the structure.
func (l *LockdownLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (l *LockdownLog) UnmarshalBinary(b []byte) error { return decode("lockdown log", b, l) }

// List returns the entries in use.
func (l *LockdownLog) List() []uint8 { return l.CFIL[:min(int(l.Length), len(l.CFIL))] }

// BootPartitionHeader is the header of the Boot Partition log page, 16 bytes;
// the partition's data follows it.
type BootPartitionHeader struct {
	_      structs.HostLayout
	LID    LogID // LogBootPartition
	_      [3]byte
	BPINFO BPINFO // without the read status
	_      [8]byte
}

// AppendBinary appends the 16 bytes of the structure.
func (h *BootPartitionHeader) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the structure from the first 16 bytes of b.
func (h *BootPartitionHeader) UnmarshalBinary(b []byte) error {
	if err := decode("boot partition header", b, h); err != nil {
		return err
	}
	if h.LID != LogBootPartition {
		return malformed("boot partition header", "log page identifier 0x%02x", uint8(h.LID))
	}
	return nil
}

// RotationalMediaLog is the Rotational Media Information log page, 512 bytes
// (figure of that name).
type RotationalMediaLog struct {
	_      structs.HostLayout
	ENDGID uint16 // endurance group
	NUMA   uint16 // actuators
	NRS    uint16 // nominal rotational speed, per minute; 0 not told
	_      [2]byte
	SPINC  uint32 // spinups
	FSPINC uint32 // failed spinups
	LDC    uint32 // actuator loads
	FLDC   uint32 // failed actuator loads
	_      [488]byte
}

// AppendBinary appends the 512 bytes of the structure.
func (l *RotationalMediaLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (l *RotationalMediaLog) UnmarshalBinary(b []byte) error {
	return decode("rotational media log", b, l)
}

// ManagementAddressLog is the Management Address List log page, 4096 bytes
// (figures "Management Address List – Log Page" and "Management Address
// Descriptor").
type ManagementAddressLog struct {
	_     structs.HostLayout
	Items [8]ManagementAddress
}

// ManagementAddress is a Management Address Descriptor, 512 bytes.
type ManagementAddress struct {
	_     structs.HostLayout
	MAT   uint8 // ManagementAddress... type
	_     [3]byte
	MADRS [508]byte // URI, ends at a zero byte
}

// Types of ManagementAddress; others are reserved.
const (
	ManagementAddressAgent  uint8 = 0x01 // management agent in the subsystem
	ManagementAddressFabric uint8 = 0x02 // fabric interface manager
	ManagementAddressEnd    uint8 = 0xff // end of the list
)

// AppendBinary appends the 4096 bytes of the structure.
func (l *ManagementAddressLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (l *ManagementAddressLog) UnmarshalBinary(b []byte) error {
	return decode("management address log", b, l)
}

// Entries returns the descriptors before the end of the list.
func (l *ManagementAddressLog) Entries() []ManagementAddress {
	for i := range l.Items {
		if l.Items[i].MAT == ManagementAddressEnd {
			return l.Items[:i]
		}
	}
	return l.Items[:]
}

// URI returns the address up to its first zero byte.
func (m *ManagementAddress) URI() string {
	uri, _, _ := bytes.Cut(m.MADRS[:], []byte{0})
	return string(uri)
}

// ParseDispersedNamespace reads the Dispersed Namespace Participating NVM
// Subsystems log page: a generation counter and the names of the subsystems,
// that of the controller itself first.
func ParseDispersedNamespace(b []byte) (generation uint64, nqns []string, err error) {
	c := cursor{what: "dispersed namespace log", b: b}
	generation = c.u64()
	n := c.u64()
	c.skip(240)
	for range c.count(n, nqnFieldSize) {
		nqn, err := getNQN(c.take(nqnFieldSize), "dispersed namespace log")
		if err != nil {
			return 0, nil, err
		}
		nqns = append(nqns, nqn)
	}
	return generation, nqns, c.err
}

// AppendDispersedNamespace appends the bytes of a Dispersed Namespace
// Participating NVM Subsystems log page.
func AppendDispersedNamespace(b []byte, generation uint64, nqns []string) ([]byte, error) {
	b = binary.LittleEndian.AppendUint64(b, generation)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(nqns)))
	b = append(b, make([]byte, 240)...)
	for _, nqn := range nqns {
		var field [nqnFieldSize]byte
		if err := putNQN(field[:], "dispersed namespace log", nqn); err != nil {
			return nil, err
		}
		b = append(b, field[:]...)
	}
	return b, nil
}
