package nvme

import (
	"bytes"
	"structs"
)

// ConnectDataSize is the size of the data of a Connect command in bytes.
const ConnectDataSize = 1024

// NQNMaxLength is the longest NVMe qualified name in bytes, without the
// terminating zero (Base Specification 4.7).
const NQNMaxLength = 223

// nqnFieldSize is the size of the field that holds an NQN in a data structure.
const nqnFieldSize = 256

// DiscoveryNQN is the well-known name of a discovery service (Base
// Specification 4.7).
const DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

// Offsets into ConnectData for the target to report an invalid parameter at.
const (
	ConnectDataHostIDOffset       = 0
	ConnectDataControllerIDOffset = 16
	ConnectDataSubNQNOffset       = 256
	ConnectDataHostNQNOffset      = 512
)

// ConnectData is the data of a Connect command, 1024 bytes (figure "Connect
// Command – Data").
type ConnectData struct {
	_            structs.HostLayout
	HostID       [16]byte
	ControllerID uint16
	_            [238]byte
	SubNQN       [nqnFieldSize]byte
	HostNQN      [nqnFieldSize]byte
	_            [256]byte
}

// NewConnectData fills a ConnectData. Both names have to be 1 to NQNMaxLength
// bytes without a zero byte; the rest of their syntax is the caller's.
func NewConnectData(hostID [16]byte, controllerID uint16, subNQN, hostNQN string) (*ConnectData, error) {
	d := &ConnectData{HostID: hostID, ControllerID: controllerID}
	if err := putNQN(d.SubNQN[:], "subsystem NQN", subNQN); err != nil {
		return nil, err
	}
	if err := putNQN(d.HostNQN[:], "host NQN", hostNQN); err != nil {
		return nil, err
	}
	return d, nil
}

// SubsystemNQN returns the name of the subsystem, or a DecodeError when the
// field is empty or has no end within the allowed length.
func (d *ConnectData) SubsystemNQN() (string, error) { return getNQN(d.SubNQN[:], "subsystem NQN") }

// HostName returns the NQN of the host, or a DecodeError when the field is
// empty or has no end within the allowed length.
func (d *ConnectData) HostName() (string, error) { return getNQN(d.HostNQN[:], "host NQN") }

// AppendBinary appends the 1024 bytes of the structure.
func (d *ConnectData) AppendBinary(b []byte) ([]byte, error) { return encode(b, d) }

// UnmarshalBinary reads the structure from the first 1024 bytes of b.
func (d *ConnectData) UnmarshalBinary(b []byte) error { return decode("connect data", b, d) }

func putNQN(dst []byte, what, nqn string) error {
	switch {
	case nqn == "":
		return outOfRange(what, "empty")
	case len(nqn) > NQNMaxLength:
		return outOfRange(what, "%d bytes, at most %d", len(nqn), NQNMaxLength)
	case bytes.IndexByte([]byte(nqn), 0) >= 0:
		return outOfRange(what, "zero byte in %q", nqn)
	}
	copy(dst, nqn)
	return nil
}

func getNQN(src []byte, what string) (string, error) {
	n := bytes.IndexByte(src, 0)
	if n < 0 || n > NQNMaxLength {
		return "", malformed(what, "no end within %d bytes", NQNMaxLength)
	}
	if n == 0 {
		return "", malformed(what, "empty")
	}
	return string(src[:n]), nil
}
