package pcietest

import "encoding/binary"

// BARs: registers and doorbells, the controller memory buffer, and the MSI-X
// table with its pending bits.
const (
	cmbBAR  = 2
	msixBAR = 4
)

// Offsets in the PCI configuration space.
const (
	pciCommand = 0x04
	pciBAR0    = 0x10
	pciCaps    = 0x34
	capPM      = 0x40
	capPCIe    = 0x50
	capMSIX    = 0x90

	pciSpace = 4096

	commandMemory = 1 << 1
	commandMaster = 1 << 2
	commandINTx   = 1 << 10
	commandBits   = 1<<0 | commandMemory | commandMaster | 1<<6 | 1<<8 | commandINTx

	msixEnable   = 1 << 15
	msixFuncMask = 1 << 14
)

// configSpace is the PCI configuration space of the function.
type configSpace struct {
	b       [pciSpace]byte
	command uint16
	bars    [6]uint32 // what was written
	sizes   [6]uint64
	msix    uint16 // message control: enable and mask
	table   []byte // the MSI-X table and pending bits, kept for whoever asks
}

// barSize returns the size of a BAR: a power of two.
func (s *configSpace) barSize(bar int) uint64 {
	if bar < 0 || bar >= len(s.sizes) {
		return 0
	}
	return s.sizes[bar]
}

func powerOfTwo(n uint64) uint64 {
	p := uint64(hostPage)
	for p < n {
		p <<= 1
	}
	return p
}

// pbaOffset is where the pending bits begin in their BAR.
func pbaOffset(vectors int) uint64 { return (uint64(vectors)*16 + 4095) &^ 4095 }

func (s *configSpace) init(cfg *Config) {
	le := binary.LittleEndian
	i := &cfg.Info
	b := s.b[:]
	le.PutUint16(b[0:], i.Vendor)
	le.PutUint16(b[2:], i.Device)
	le.PutUint16(b[6:], 1<<4) // status: there are capabilities
	b[8] = i.Revision
	b[9], b[10], b[11] = byte(i.Class), byte(i.Class>>8), byte(i.Class>>16)
	le.PutUint16(b[0x2c:], i.SubsystemVendor)
	le.PutUint16(b[0x2e:], i.SubsystemDevice)
	b[0x3d] = 1 // INTA
	s.sizes[0] = barOf(cfg)
	if cfg.CMB.Size > 0 {
		s.sizes[cmbBAR] = powerOfTwo(uint64(cfg.CMB.Size))
	}
	b[pciCaps] = capPM
	b[capPM], b[capPM+1] = 0x01, capPCIe
	le.PutUint16(b[capPM+2:], 3)
	b[capPCIe] = 0x10
	le.PutUint16(b[capPCIe+2:], 2)      // an endpoint, version 2
	le.PutUint32(b[capPCIe+4:], 1<<28)  // function level reset
	le.PutUint32(b[capPCIe+0xc:], 0x43) // link: 8 GT/s, x4
	le.PutUint16(b[capPCIe+0x12:], 0x43)
	if n := cfg.Interrupts; n > 0 {
		pba := pbaOffset(n)
		s.sizes[msixBAR] = powerOfTwo(pba + (uint64(n)+63)/64*8)
		s.table = make([]byte, s.sizes[msixBAR])
		b[capPCIe+1] = capMSIX
		b[capMSIX] = 0x11
		le.PutUint16(b[capMSIX+2:], uint16(n-1))
		le.PutUint32(b[capMSIX+4:], msixBAR)
		le.PutUint32(b[capMSIX+8:], uint32(pba)|msixBAR)
	}
}

// read reads the configuration space.
func (s *configSpace) read(p []byte, off uint64) {
	view := s.b
	le := binary.LittleEndian
	le.PutUint16(view[pciCommand:], s.command)
	for i := range s.bars {
		le.PutUint32(view[pciBAR0+4*i:], s.barValue(i))
	}
	if s.table != nil {
		le.PutUint16(view[capMSIX+2:], le.Uint16(view[capMSIX+2:])|s.msix)
	}
	copy(p, view[off:])
}

// barValue is what a BAR reads as: 64-bit memory, in two halves.
func (s *configSpace) barValue(i int) uint32 {
	size := s.sizes[i&^1]
	switch {
	case size == 0:
		return 0
	case i&1 != 0:
		return s.bars[i] & uint32(^(size-1)>>32)
	}
	return s.bars[i]&uint32(^(size-1))&^0xf | 4
}

// write writes the configuration space: the command register, BARs, and what
// MSI-X and function level reset have. The rest is read-only. It reports
// whether a function level reset was asked for.
func (s *configSpace) write(p []byte, off uint64) (flr bool) {
	view := make([]byte, pciSpace)
	s.read(view, 0)
	n := copy(view[off:], p)
	le := binary.LittleEndian
	touched := func(at, size uint64) bool { return off < at+size && at < off+uint64(n) }
	if touched(pciCommand, 2) {
		s.command = le.Uint16(view[pciCommand:]) & commandBits
	}
	for i := range s.bars {
		if touched(pciBAR0+4*uint64(i), 4) {
			s.bars[i] = le.Uint32(view[pciBAR0+4*i:])
		}
	}
	if s.table != nil && touched(capMSIX+2, 2) {
		s.msix = le.Uint16(view[capMSIX+2:]) & (msixEnable | msixFuncMask)
	}
	return touched(capPCIe+8, 2) && le.Uint16(view[capPCIe+8:])&(1<<15) != 0
}
