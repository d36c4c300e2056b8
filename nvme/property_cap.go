package nvme

import "time"

// timeoutUnit is the unit of CAP.TO and of both fields of CRTO.
const timeoutUnit = 500 * time.Millisecond

// CAP is the Controller Capabilities property (Base Specification 3.1.4.1).
type CAP uint64

// Bits of CAP.AMS: arbitration mechanisms besides round robin.
const (
	CAPAMSWeightedRoundRobin uint8 = 1 << 0 // with urgent priority class
	CAPAMSVendor             uint8 = 1 << 1
)

// Bits of CAP.CSS: command sets supported.
const (
	CAPCSSNVM   uint8 = 1 << 0 // NVM command set, or a discovery controller
	CAPCSSIOCS  uint8 = 1 << 6 // one or more command sets, told by Identify CNS 1Ch
	CAPCSSAdmin uint8 = 1 << 7 // no I/O command set
)

// Values of CAP.CPS: the scope of power control.
const (
	CAPCPSNone       uint8 = 0 // not reported
	CAPCPSController uint8 = 1
	CAPCPSDomain     uint8 = 2
	CAPCPSSubsystem  uint8 = 3
)

// MQES returns the raw field: the largest queue size minus one. 0 is not
// allowed. See MaxQueueEntries.
func (c CAP) MQES() uint16 { return uint16(c) }

// MaxQueueEntries returns the largest I/O queue size in entries, 1 to 65536;
// 1 means that the controller broke the rule of at least two.
func (c CAP) MaxQueueEntries() uint32 { return uint32(c.MQES()) + 1 }

// CQR tells whether I/O queues have to be physically contiguous.
func (c CAP) CQR() bool { return bit(c, 16) }

// AMS returns the CAPAMS... bits.
func (c CAP) AMS() uint8 { return uint8(field(c, 17, 2)) }

// TO returns the longest time for CSTS.RDY to follow CC.EN, 0 to 127.5 s. With
// CRTO at hand, that is the better figure for enabling.
func (c CAP) TO() time.Duration { return time.Duration(field(c, 24, 8)) * timeoutUnit }

// DSTRD returns the raw doorbell stride; see DoorbellStride.
func (c CAP) DSTRD() uint8 { return uint8(field(c, 32, 4)) }

// DoorbellStride returns the distance of neighbouring doorbells in bytes, 4
// to 131072.
func (c CAP) DoorbellStride() uint32 { return 4 << c.DSTRD() }

// NSSRS tells whether NVM subsystem reset is supported.
func (c CAP) NSSRS() bool { return bit(c, 36) }

// CSS returns the CAPCSS... bits.
func (c CAP) CSS() uint8 { return uint8(field(c, 37, 8)) }

// BPS tells whether boot partitions are supported.
func (c CAP) BPS() bool { return bit(c, 45) }

// CPS returns one of the CAPCPS... values.
func (c CAP) CPS() uint8 { return uint8(field(c, 46, 2)) }

// MPSMIN returns the raw smallest memory page size; see MinPageSize.
func (c CAP) MPSMIN() uint8 { return uint8(field(c, 48, 4)) }

// MPSMAX returns the raw largest memory page size; see MaxPageSize.
func (c CAP) MPSMAX() uint8 { return uint8(field(c, 52, 4)) }

// MinPageSize returns the smallest memory page size in bytes, 4 KiB to 128 MiB.
func (c CAP) MinPageSize() uint32 { return 4096 << c.MPSMIN() }

// MaxPageSize returns the largest memory page size in bytes, 4 KiB to 128 MiB.
func (c CAP) MaxPageSize() uint32 { return 4096 << c.MPSMAX() }

// PMRS tells whether a persistent memory region is supported.
func (c CAP) PMRS() bool { return bit(c, 56) }

// CMBS tells whether a controller memory buffer is supported.
func (c CAP) CMBS() bool { return bit(c, 57) }

// NSSS tells whether NVM subsystem shutdown is supported.
func (c CAP) NSSS() bool { return bit(c, 58) }

// CRWMS tells whether the controller ready with media mode is supported,
// which every controller from revision 2.0 on does.
func (c CAP) CRWMS() bool { return bit(c, 59) }

// CRIMS tells whether the controller ready independent of media mode is
// supported.
func (c CAP) CRIMS() bool { return bit(c, 60) }

// NSSES tells whether the NVM subsystem shutdown enhancements are supported.
func (c CAP) NSSES() bool { return bit(c, 61) }

// CAPFields holds the fields of CAP, for the side that composes it.
type CAPFields struct {
	MQES   uint16        // largest queue size minus one
	CQR    bool          // contiguous queues required; always set over fabrics
	AMS    uint8         // CAPAMS... bits
	TO     time.Duration // rounded up to 500 ms, at most 127.5 s
	DSTRD  uint8         // doorbell stride 4<<DSTRD bytes
	NSSRS  bool
	CSS    uint8 // CAPCSS... bits
	BPS    bool
	CPS    uint8 // a CAPCPS... value
	MPSMIN uint8 // smallest page size 4096<<MPSMIN bytes
	MPSMAX uint8 // largest page size 4096<<MPSMAX bytes
	PMRS   bool
	CMBS   bool
	NSSS   bool
	CRWMS  bool
	CRIMS  bool
	NSSES  bool
}

// CAP returns the property value; fields wider than theirs are cut off.
func (f CAPFields) CAP() CAP {
	c := CAP(f.MQES) | flag[CAP](f.CQR, 16) | flag[CAP](f.NSSRS, 36) | flag[CAP](f.BPS, 45) |
		flag[CAP](f.PMRS, 56) | flag[CAP](f.CMBS, 57) | flag[CAP](f.NSSS, 58) |
		flag[CAP](f.CRWMS, 59) | flag[CAP](f.CRIMS, 60) | flag[CAP](f.NSSES, 61)
	c = withField(c, 17, 2, CAP(f.AMS))
	c = withField(c, 24, 8, CAP(units(f.TO, timeoutUnit, 0xff)))
	c = withField(c, 32, 4, CAP(f.DSTRD))
	c = withField(c, 37, 8, CAP(f.CSS))
	c = withField(c, 46, 2, CAP(f.CPS))
	c = withField(c, 48, 4, CAP(f.MPSMIN))
	return withField(c, 52, 4, CAP(f.MPSMAX))
}

// Fields returns all fields of CAP.
func (c CAP) Fields() CAPFields {
	return CAPFields{
		MQES: c.MQES(), CQR: c.CQR(), AMS: c.AMS(), TO: c.TO(), DSTRD: c.DSTRD(),
		NSSRS: c.NSSRS(), CSS: c.CSS(), BPS: c.BPS(), CPS: c.CPS(),
		MPSMIN: c.MPSMIN(), MPSMAX: c.MPSMAX(), PMRS: c.PMRS(), CMBS: c.CMBS(),
		NSSS: c.NSSS(), CRWMS: c.CRWMS(), CRIMS: c.CRIMS(), NSSES: c.NSSES(),
	}
}

// CRTO is the Controller Ready Timeouts property (Base Specification
// 3.1.4.22), which controllers from revision 2.0 on have.
type CRTO uint32

// MakeCRTO composes CRTO; both times are rounded up to 500 ms.
func MakeCRTO(crwmt, crimt time.Duration) CRTO {
	return CRTO(units(crwmt, timeoutUnit, 0xffff) | units(crimt, timeoutUnit, 0xffff)<<16)
}

// CRWMT returns the longest time for the controller, its namespaces and media
// to be ready after CC.EN is set.
func (c CRTO) CRWMT() time.Duration { return time.Duration(field(c, 0, 16)) * timeoutUnit }

// CRIMT returns the longest time for the controller to be ready independent of
// media after CC.EN is set. It means nothing unless CAP.CRIMS is set.
func (c CRTO) CRIMT() time.Duration { return time.Duration(field(c, 16, 16)) * timeoutUnit }
