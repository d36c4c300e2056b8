package pcietest

import (
	"errors"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

// DefaultNQN is the name of the subsystem of a zero Config.
const DefaultNQN = "nqn.2026-01.io.github.qpoll:pcietest"

// DefaultSize is the capacity in bytes of the namespace of a zero Config.
const DefaultSize = 64 << 20

// ErrConfig means that a configuration makes no sense.
var ErrConfig = errors.New("pcietest: bad configuration")

// Config describes a controller. The zero value works.
type Config struct {
	// Name is that of Device.Name; empty is "pcietest".
	Name string

	// Info is what the PCI configuration space says. Zero fields: identifiers of
	// no vendor, and the class of NVMe; NUMANode 0 is unknown (-1).
	Info pcie.Info

	// QueueEntries is the size of the largest queue (MQES+1), 2 to 65536; 0 is
	// 1024.
	QueueEntries int

	// IOQueues is how many I/O queue pairs there may be, 1 to 65535; 0 is 64.
	IOQueues int

	// DoorbellStride is CAP.DSTRD, 0 to 15: doorbells are 4<<DSTRD bytes apart.
	DoorbellStride uint8

	// MinPage and MaxPage are CAP.MPSMIN and MPSMAX: pages of 4096<<MinPage to
	// 4096<<MaxPage bytes, 0 to 15. A zero MaxPage is 4 (64 KiB), or MinPage.
	MinPage, MaxPage uint8

	// Timeout is CAP.TO, up to 127.5 s, rounded up to 500 ms; 0 is 5 s, a
	// negative one is reported as 0.
	Timeout time.Duration

	// ReadyTime is how long enabling and disabling takes, ShutdownTime the same
	// for a shutdown, on the clock of Poll. Negative is forever.
	ReadyTime, ShutdownTime time.Duration

	// Version is VS; 0 is 2.1.
	Version nvme.VS

	// MaxTransfer is the most data of a command in bytes (MDTS): a power of two
	// times the smallest page, up to 64 MiB. 0 is 1 MiB.
	MaxTransfer int

	// Weighted offers weighted round robin with urgent priority class (CAP.AMS).
	Weighted bool

	// NoSGL has controllers take PRPs only; NoShadow leaves out Doorbell Buffer
	// Config.
	NoSGL, NoShadow bool

	// ShadowNotify has the controller look at shadow doorbells only when the
	// driver writes the real one, as the event index tells it to. Without, it
	// looks all the time and asks for no writes.
	ShadowNotify bool

	// CMB is a controller memory buffer.
	CMB CMBConfig

	// Interrupts is the number of MSI-X vectors, 1 to 2048; 0 is one for each
	// queue, up to 2048. Negative is none.
	Interrupts int

	// NQN, Serial, Model and Firmware are reported as they are, the last three
	// cut off at 20, 40 and 8 bytes. ControllerID is CNTLID; 0 is 1.
	NQN, Serial, Model, Firmware string
	ControllerID                 uint16

	// Namespaces to begin with. Nil is one of DefaultSize bytes of memory; an
	// empty list is none.
	Namespaces []NamespaceConfig

	// MaxNamespaces is NN; 0 is 64, or more if there are more.
	MaxNamespaces uint32

	// Capacity in bytes is what namespace management can make namespaces of,
	// beyond Namespaces. 0 leaves namespace management out.
	Capacity int64

	// ANA reports asymmetric namespace access: see Controller.SetANA.
	ANA bool

	// Ideal has Read, Write and Flush cost next to nothing: they complete at
	// once, with success, unread and unchecked, so that what a driver costs can
	// be measured. Rules for faults do not apply to them.
	Ideal bool

	// IOVARanges is what the IOMMU lets pass; nil is 4 KiB to 48 bits less what
	// interrupts take. MaxMappings is how many mappings it takes; 0 is no limit.
	IOVARanges  []pcie.Range
	MaxMappings int

	// Spin is how long the goroutine of Start looks for work after it has had
	// some, before it sleeps between looks; 0 is 100 us, negative is forever.
	Spin time.Duration
}

// CMBConfig describes a controller memory buffer, in a BAR of its own (BAR 2).
type CMBConfig struct {
	// Size in bytes, a multiple of 4096 up to 1 GiB; 0 is none.
	Size int64

	// What it is not good for: submission queues, completion queues, PRP lists
	// and SGL segments, data of reads, and data of writes (CMBSZ).
	NoSQ, NoCQ, NoLists, NoReads, NoWrites bool
}

// NamespaceConfig describes a namespace. The zero value works.
type NamespaceConfig struct {
	// NSID identifies the namespace; 0 is the lowest that is free.
	NSID uint32

	// BlockSize is 512 or 4096 bytes, and can be changed by Format NVM. 0 is
	// 512.
	BlockSize uint32

	// Backend keeps the data; nil is a Memory of Size bytes, which the
	// controller closes. Others stay the caller's, and may be shared by several
	// controllers.
	Backend Backend
	Size    int64 // 0 is DefaultSize

	// UUID, NGUID and EUI64 are reported as they are. If all are zero, a UUID is
	// made from the NQN and the NSID.
	UUID, NGUID [16]byte
	EUI64       [8]byte

	// Detached namespaces are there, but not attached to the controller.
	Detached bool

	// ReadOnly makes writes fail.
	ReadOnly bool

	// Shared says that other controllers may have it too (NMIC).
	Shared bool

	// ANAGroup is the ANA group, with Config.ANA; 0 is 1.
	ANAGroup uint32
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

// fill checks a configuration and fills in defaults.
func (c *Config) fill() error {
	c.Name = or(c.Name, "pcietest")
	c.QueueEntries = or(c.QueueEntries, 1024)
	c.IOQueues = or(c.IOQueues, 64)
	c.Timeout = or(c.Timeout, 5*time.Second)
	c.Version = or(c.Version, nvme.Version21)
	c.MaxTransfer = or(c.MaxTransfer, max(1<<20, 4096<<min(c.MinPage, 15)))
	c.Spin = or(c.Spin, 100*time.Microsecond)
	c.NQN = or(c.NQN, DefaultNQN)
	c.Serial = or(c.Serial, "PCIETEST0001")
	c.Model = or(c.Model, "qpoll software controller")
	c.Firmware = or(c.Firmware, "1")
	c.ControllerID = or(c.ControllerID, 1)
	if c.MaxPage == 0 {
		c.MaxPage = max(4, c.MinPage)
	}
	if c.Namespaces == nil {
		c.Namespaces = []NamespaceConfig{{}}
	}
	c.MaxNamespaces = or(c.MaxNamespaces, max(64, uint32(len(c.Namespaces))))
	c.fillPCI()
	return c.check()
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (c *Config) fillPCI() {
	i := &c.Info
	i.Vendor, i.Device = or(i.Vendor, 0xfffe), or(i.Device, 0x0001)
	i.SubsystemVendor, i.SubsystemDevice = or(i.SubsystemVendor, i.Vendor), or(i.SubsystemDevice, i.Device)
	i.Class = or(i.Class, 0x010802)
	i.NUMANode = or(i.NUMANode, -1)
	if c.IOVARanges == nil {
		// As of an Intel IOMMU: interrupts are messages to 0xfee00000.
		c.IOVARanges = []pcie.Range{{First: 0x1000, Last: 0xfedfffff}, {First: 0xfef00000, Last: 1<<48 - 1}}
	}
	if c.Interrupts == 0 {
		c.Interrupts = min(c.IOQueues+1, 2048)
	}
}

func (c *Config) check() error {
	units := c.MaxTransfer >> (12 + min(c.MinPage, 15))
	switch {
	case c.QueueEntries < 2 || c.QueueEntries > 1<<16:
		return bad("queues of %d entries", c.QueueEntries)
	case c.IOQueues < 1 || c.IOQueues > 65535:
		return bad("%d I/O queues", c.IOQueues)
	case c.DoorbellStride > 15 || uint64(2*(c.IOQueues+1))<<(2+c.DoorbellStride) > 1<<30:
		return bad("doorbell stride %d for %d queues", c.DoorbellStride, c.IOQueues)
	case c.MinPage > c.MaxPage || c.MaxPage > 15:
		return bad("pages from %d to %d", c.MinPage, c.MaxPage)
	case c.Timeout > 127500*time.Millisecond:
		return bad("timeout %v", c.Timeout)
	case c.MaxTransfer > 64<<20 || units < 1 || units&(units-1) != 0 || c.MaxTransfer&(c.MaxTransfer-1) != 0:
		return bad("transfers of %d bytes", c.MaxTransfer)
	case c.CMB.Size < 0 || c.CMB.Size%4096 != 0 || c.CMB.Size > 1<<30:
		return bad("controller memory buffer of %d bytes", c.CMB.Size)
	case c.Interrupts > 2048:
		return bad("%d interrupt vectors", c.Interrupts)
	case c.Capacity < 0:
		return bad("capacity %d", c.Capacity)
	}
	if err := nvme.CheckNQN(c.NQN); err != nil {
		return bad("%v", err)
	}
	return nil
}
