package nvme

import (
	"encoding/binary"
	"structs"
)

// SelfTestLog is the Device Self-test log page, 564 bytes (Base Specification
// 2.1, figure of that name).
type SelfTestLog struct {
	_          structs.HostLayout
	Operation  uint8 // current operation in 3:0: 0 none, or a SelfTest... code
	Completion uint8 // percent in 6:0
	_          [2]byte
	Results    [20]SelfTestResult // the newest first
}

// SelfTestResult is a Self-test Result data structure, 28 bytes.
type SelfTestResult struct {
	_           structs.HostLayout
	DSTS        uint8    // code in 7:4, result in 3:0; see Code and Result
	Segment     uint8    // first segment that failed, with SelfTestSegmentFailed
	VDINFO      uint8    // SelfTestValid... bits
	_           [1]byte  //
	POH         [8]byte  // see PowerOnHours
	NSID        uint32   // namespace of the failing LBA
	FLBA        [8]byte  // see FailingLBA
	STCT        SCT      // status code type
	STC         uint8    // status code
	VendorBytes [2]uint8 // vendor specific
}

// Codes of self-tests: the STC field of the command, and what SelfTestResult
// and SelfTestLog.Operation tell.
const (
	SelfTestNone     uint8 = 0x0
	SelfTestShort    uint8 = 0x1
	SelfTestExtended uint8 = 0x2
	SelfTestRefresh  uint8 = 0x3 // host-initiated refresh
	SelfTestVendor   uint8 = 0xe
	SelfTestAbort    uint8 = 0xf // command only: abort the test that runs
)

// Results of self-tests.
const (
	SelfTestPassed           uint8 = 0x0
	SelfTestAborted          uint8 = 0x1 // by a Device Self-test command
	SelfTestAbortedReset     uint8 = 0x2
	SelfTestAbortedNamespace uint8 = 0x3 // namespace removed
	SelfTestAbortedFormat    uint8 = 0x4
	SelfTestFatal            uint8 = 0x5
	SelfTestUnknownSegment   uint8 = 0x6
	SelfTestSegmentFailed    uint8 = 0x7
	SelfTestAbortedUnknown   uint8 = 0x8
	SelfTestAbortedSanitize  uint8 = 0x9
	SelfTestUnused           uint8 = 0xf // no result in this entry
)

// Bits of SelfTestResult.VDINFO: fields that are valid.
const (
	SelfTestValidNSID uint8 = 1 << 0
	SelfTestValidLBA  uint8 = 1 << 1
	SelfTestValidSCT  uint8 = 1 << 2
	SelfTestValidSC   uint8 = 1 << 3
)

// AppendBinary appends the 564 bytes of the structure.
func (l *SelfTestLog) AppendBinary(b []byte) ([]byte, error) { return encode(b, l) }

// UnmarshalBinary reads the structure from the first 564 bytes of b.
func (l *SelfTestLog) UnmarshalBinary(b []byte) error { return decode("self-test log", b, l) }

// Running returns the code of the test that runs and how far it is in percent;
// SelfTestNone when none does.
func (l *SelfTestLog) Running() (code, percent uint8) { return l.Operation & 0xf, l.Completion & 0x7f }

// Code returns which self-test it was; SelfTestNone for an unused entry.
func (r *SelfTestResult) Code() uint8 { return r.DSTS >> 4 }

// Result returns how it went; SelfTestUnused for an unused entry.
func (r *SelfTestResult) Result() uint8 { return r.DSTS & 0xf }

// PowerOnHours returns the power-on hours at the end of the test.
func (r *SelfTestResult) PowerOnHours() uint64 { return binary.LittleEndian.Uint64(r.POH[:]) }

// FailingLBA returns the LBA that failed, valid with SelfTestValidLBA.
func (r *SelfTestResult) FailingLBA() uint64 { return binary.LittleEndian.Uint64(r.FLBA[:]) }
