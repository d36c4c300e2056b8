package vfuser

import "encoding/binary"

// Flags of DeviceInfo (VFIO_DEVICE_FLAGS_*).
const (
	DeviceReset uint32 = 1 << 0 // CmdDeviceReset works
	DevicePCI   uint32 = 1 << 1
)

// Regions and interrupts of a PCI device, by their index (VFIO_PCI_*_INDEX).
const (
	RegionBAR0   = 0
	RegionBAR5   = 5
	RegionROM    = 6
	RegionConfig = 7
	RegionVGA    = 8
	Regions      = 9

	IRQINTx  = 0
	IRQMSI   = 1
	IRQMSIX  = 2
	IRQError = 3
	IRQReq   = 4
	IRQs     = 5
)

// DeviceInfoSize is the size of DeviceInfo in bytes.
const DeviceInfoSize = 16

// DeviceInfo describes a device (struct vfio_user_device_info), both ways.
type DeviceInfo struct {
	ArgSize uint32 // how much the caller has room for, at least DeviceInfoSize
	Flags   uint32
	Regions uint32
	IRQs    uint32
}

// Append appends the payload to b.
func (d DeviceInfo) Append(b []byte) []byte {
	return append32(b, d.ArgSize, d.Flags, d.Regions, d.IRQs)
}

// ParseDeviceInfo reads the payload.
func ParseDeviceInfo(b []byte) (DeviceInfo, error) {
	if len(b) < DeviceInfoSize {
		return DeviceInfo{}, short("device info", len(b), DeviceInfoSize)
	}
	v := words(b)
	return DeviceInfo{ArgSize: v(0), Flags: v(1), Regions: v(2), IRQs: v(3)}, nil
}

// Flags of IRQInfo (VFIO_IRQ_INFO_*).
const (
	IRQEventFD    uint32 = 1 << 0
	IRQMaskable   uint32 = 1 << 1
	IRQAutomasked uint32 = 1 << 2
	IRQNoResize   uint32 = 1 << 3
)

// IRQInfoSize is the size of IRQInfo in bytes.
const IRQInfoSize = 16

// IRQInfo describes one kind of interrupt (struct vfio_irq_info), both ways.
type IRQInfo struct {
	ArgSize uint32 // how much the caller has room for, at least IRQInfoSize
	Flags   uint32
	Index   uint32
	Count   uint32
}

// Append appends the payload to b.
func (i IRQInfo) Append(b []byte) []byte { return append32(b, i.ArgSize, i.Flags, i.Index, i.Count) }

// ParseIRQInfo reads the payload.
func ParseIRQInfo(b []byte) (IRQInfo, error) {
	if len(b) < IRQInfoSize {
		return IRQInfo{}, short("irq info", len(b), IRQInfoSize)
	}
	v := words(b)
	return IRQInfo{ArgSize: v(0), Flags: v(1), Index: v(2), Count: v(3)}, nil
}

// Flags of IRQSet (VFIO_IRQ_SET_*): one kind of data, and one action.
const (
	IRQDataNone    uint32 = 1 << 0 // the interrupts Start to Start+Count, or all for a Count of 0
	IRQDataBool    uint32 = 1 << 1 // a byte for each of them
	IRQDataEventFD uint32 = 1 << 2 // a descriptor for each of them; none takes them away
	IRQMask        uint32 = 1 << 3
	IRQUnmask      uint32 = 1 << 4
	IRQTrigger     uint32 = 1 << 5 // with descriptors: signal this when the interrupt occurs

	IRQDataBits   = IRQDataNone | IRQDataBool | IRQDataEventFD
	IRQActionBits = IRQMask | IRQUnmask | IRQTrigger
)

// IRQSetSize is the size of IRQSet in bytes, less what follows it.
const IRQSetSize = 20

// IRQSet says what happens with interrupts (struct vfio_irq_set). Descriptors
// go with the message, not in it.
type IRQSet struct {
	Flags        uint32
	Index        uint32
	Start, Count uint32
	Bools        []byte // for IRQDataBool
}

// Append appends the payload to b.
func (s IRQSet) Append(b []byte) []byte {
	b = append32(b, uint32(IRQSetSize+len(s.Bools)), s.Flags, s.Index, s.Start, s.Count)
	return append(b, s.Bools...)
}

// ParseIRQSet reads the payload of a message that came with fds descriptors,
// and checks that flags, count and data go together. Bools is part of b.
func ParseIRQSet(b []byte, fds int) (IRQSet, error) {
	const what = "set irqs"
	if len(b) < IRQSetSize {
		return IRQSet{}, short(what, len(b), IRQSetSize)
	}
	v := words(b)
	s := IRQSet{Flags: v(1), Index: v(2), Start: v(3), Count: v(4)}
	data, action := s.Flags&IRQDataBits, s.Flags&IRQActionBits
	switch {
	case v(0) < IRQSetSize:
		return IRQSet{}, malformed(what, "argsz %d", v(0))
	case s.Flags&^(IRQDataBits|IRQActionBits) != 0 || data&(data-1) != 0 || data == 0 || action&(action-1) != 0 || action == 0:
		return IRQSet{}, malformed(what, "flags %#x", s.Flags)
	case uint64(s.Start)+uint64(s.Count) > 1<<32-1:
		return IRQSet{}, malformed(what, "%d interrupts from %d on", s.Count, s.Start)
	case s.Count == 0 && (s.Start != 0 || action != IRQTrigger || data != IRQDataNone):
		return IRQSet{}, malformed(what, "no interrupts, flags %#x", s.Flags)
	case data == IRQDataBool && uint64(len(b)-IRQSetSize) != uint64(s.Count):
		return IRQSet{}, malformed(what, "%d bytes for %d interrupts", len(b)-IRQSetSize, s.Count)
	case fds != 0 && (data != IRQDataEventFD || uint64(fds) != uint64(s.Count)):
		return IRQSet{}, malformed(what, "%d descriptors for %d interrupts, flags %#x", fds, s.Count, s.Flags)
	}
	if data == IRQDataBool {
		s.Bools = b[IRQSetSize:]
	}
	return s, nil
}

func append32(b []byte, vs ...uint32) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func append64(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// words returns a function that reads the dword with an index.
func words(b []byte) func(int) uint32 {
	return func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
}
