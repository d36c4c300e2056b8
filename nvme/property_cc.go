package nvme

import "fmt"

// CC is the Controller Configuration property (Base Specification 3.1.4.5).
type CC uint32

// Values of CC.CSS: the I/O command sets selected.
const (
	CCCSSNVM   uint8 = 0 // NVM command set
	CCCSSAll   uint8 = 6 // all supported command sets
	CCCSSAdmin uint8 = 7 // admin command set only
)

// Values of CC.AMS: the arbitration mechanism selected.
const (
	CCAMSRoundRobin         uint8 = 0
	CCAMSWeightedRoundRobin uint8 = 1 // with urgent priority class
	CCAMSVendor             uint8 = 7
)

// Values of CC.SHN: the shutdown notification.
const (
	CCSHNNone   uint8 = 0
	CCSHNNormal uint8 = 1
	CCSHNAbrupt uint8 = 2
)

// EN tells whether the controller is enabled.
func (c CC) EN() bool { return bit(c, 0) }

// CSS returns one of the CCCSS... values.
func (c CC) CSS() uint8 { return uint8(field(c, 4, 3)) }

// MPS returns the raw memory page size; see PageSize.
func (c CC) MPS() uint8 { return uint8(field(c, 7, 4)) }

// PageSize returns the memory page size in bytes, 4 KiB to 128 MiB.
func (c CC) PageSize() uint32 { return 4096 << c.MPS() }

// AMS returns one of the CCAMS... values.
func (c CC) AMS() uint8 { return uint8(field(c, 11, 3)) }

// SHN returns one of the CCSHN... values.
func (c CC) SHN() uint8 { return uint8(field(c, 14, 2)) }

// IOSQES returns the I/O submission queue entry size as a power of two; 6 for
// the 64 bytes of the NVM command set.
func (c CC) IOSQES() uint8 { return uint8(field(c, 16, 4)) }

// IOCQES returns the I/O completion queue entry size as a power of two; 4 for
// 16 bytes.
func (c CC) IOCQES() uint8 { return uint8(field(c, 20, 4)) }

// CRIME tells whether the controller is to be ready independent of media.
func (c CC) CRIME() bool { return bit(c, 24) }

// WithEN returns c with the enable bit set or cleared.
func (c CC) WithEN(on bool) CC { return c&^1 | flag[CC](on, 0) }

// WithSHN returns c with the shutdown notification set to a CCSHN... value.
func (c CC) WithSHN(v uint8) CC { return withField(c, 14, 2, CC(v)) }

// CCFields holds the fields of CC, for the side that composes it.
type CCFields struct {
	EN     bool
	CSS    uint8 // a CCCSS... value
	MPS    uint8 // page size 4096<<MPS bytes
	AMS    uint8 // a CCAMS... value
	SHN    uint8 // a CCSHN... value
	IOSQES uint8 // power of two
	IOCQES uint8 // power of two
	CRIME  bool
}

// CC returns the property value; fields wider than theirs are cut off.
func (f CCFields) CC() CC {
	c := flag[CC](f.EN, 0) | flag[CC](f.CRIME, 24)
	c = withField(c, 4, 3, CC(f.CSS))
	c = withField(c, 7, 4, CC(f.MPS))
	c = withField(c, 11, 3, CC(f.AMS))
	c = withField(c, 14, 2, CC(f.SHN))
	c = withField(c, 16, 4, CC(f.IOSQES))
	return withField(c, 20, 4, CC(f.IOCQES))
}

// Fields returns all fields of CC.
func (c CC) Fields() CCFields {
	return CCFields{
		EN: c.EN(), CSS: c.CSS(), MPS: c.MPS(), AMS: c.AMS(), SHN: c.SHN(),
		IOSQES: c.IOSQES(), IOCQES: c.IOCQES(), CRIME: c.CRIME(),
	}
}

// CSTS is the Controller Status property (Base Specification 3.1.4.6).
type CSTS uint32

// CSTSGone is what a read of CSTS gives when the device has left the bus.
const CSTSGone CSTS = 0xffffffff

// Values of CSTS.SHST: the shutdown status.
const (
	CSTSSHSTNormal     uint8 = 0 // no shutdown has been asked for
	CSTSSHSTInProgress uint8 = 1
	CSTSSHSTComplete   uint8 = 2
)

// RDY tells whether the controller is ready for commands.
func (c CSTS) RDY() bool { return bit(c, 0) }

// CFS tells whether a fatal controller error has happened.
func (c CSTS) CFS() bool { return bit(c, 1) }

// SHST returns one of the CSTSSHST... values; 3 is reserved.
func (c CSTS) SHST() uint8 { return uint8(field(c, 2, 2)) }

// NSSRO tells whether an NVM subsystem reset has occurred.
func (c CSTS) NSSRO() bool { return bit(c, 4) }

// PP tells whether the controller has paused processing of commands.
func (c CSTS) PP() bool { return bit(c, 5) }

// ST tells whether SHST speaks of the NVM subsystem, not of this controller.
func (c CSTS) ST() bool { return bit(c, 6) }

// Gone tells whether the value is what reading from an absent device gives.
func (c CSTS) Gone() bool { return c == CSTSGone }

// String lists the bits that are set.
func (c CSTS) String() string {
	if c.Gone() {
		return "0xffffffff (device gone)"
	}
	return fmt.Sprintf("0x%x (ready %v, fatal %v, shutdown %d, paused %v)", uint32(c), c.RDY(), c.CFS(), c.SHST(), c.PP())
}

// CSTSFields holds the fields of CSTS, for the side that composes it.
type CSTSFields struct {
	RDY   bool
	CFS   bool
	SHST  uint8 // a CSTSSHST... value
	NSSRO bool
	PP    bool
	ST    bool
}

// CSTS returns the property value.
func (f CSTSFields) CSTS() CSTS {
	return flag[CSTS](f.RDY, 0) | flag[CSTS](f.CFS, 1) | CSTS(f.SHST&3)<<2 |
		flag[CSTS](f.NSSRO, 4) | flag[CSTS](f.PP, 5) | flag[CSTS](f.ST, 6)
}

// Fields returns all fields of CSTS.
func (c CSTS) Fields() CSTSFields {
	return CSTSFields{RDY: c.RDY(), CFS: c.CFS(), SHST: c.SHST(), NSSRO: c.NSSRO(), PP: c.PP(), ST: c.ST()}
}

// AQA is the Admin Queue Attributes property (Base Specification 3.1.4.8).
type AQA uint32

// MaxAdminQueueEntries is the largest admin queue of a memory-based
// controller, in entries.
const MaxAdminQueueEntries = 4096

// MakeAQA composes AQA from sizes in entries, each 2 to MaxAdminQueueEntries;
// values outside are moved to the nearer end.
func MakeAQA(sqEntries, cqEntries int) AQA {
	size := func(n int) AQA { return AQA(min(max(n, 2), MaxAdminQueueEntries) - 1) }
	return size(sqEntries) | size(cqEntries)<<16
}

// SQEntries returns the admin submission queue size in entries.
func (a AQA) SQEntries() int { return int(field(a, 0, 12)) + 1 }

// CQEntries returns the admin completion queue size in entries.
func (a AQA) CQEntries() int { return int(field(a, 16, 12)) + 1 }

// VS is the Version property, and the VER field of Identify Controller (Base
// Specification 3.1.4.2).
type VS uint32

// Versions that change what a host may rely on.
const (
	Version10 VS = 0x010000
	Version11 VS = 0x010100
	Version12 VS = 0x010200
	Version13 VS = 0x010300
	Version14 VS = 0x010400
	Version20 VS = 0x020000
	Version21 VS = 0x020100
)

// MakeVS composes a version.
func MakeVS(major uint16, minor, tertiary uint8) VS {
	return VS(major)<<16 | VS(minor)<<8 | VS(tertiary)
}

// Major returns the major version number.
func (v VS) Major() uint16 { return uint16(v >> 16) }

// Minor returns the minor version number.
func (v VS) Minor() uint8 { return uint8(v >> 8) }

// Tertiary returns the tertiary version number, mostly 0.
func (v VS) Tertiary() uint8 { return uint8(v) }

// AtLeast tells whether v is version w or later.
func (v VS) AtLeast(w VS) bool { return v >= w }

// String returns the version as "2.0" or "1.2.1".
func (v VS) String() string {
	if v.Tertiary() == 0 {
		return fmt.Sprintf("%d.%d", v.Major(), v.Minor())
	}
	return fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Tertiary())
}
