package pcie

import (
	"fmt"
	"log/slog"

	"github.com/qpoll/qpoll/nvme"
)

// Config holds what can be chosen about a local controller, for the field
// Transport of nvme.Config. The zero value works. The number and size of
// queues are in nvme.Config; both go up to what the controller allows.
type Config struct {
	// Interrupts has MSI-X interrupts wake pollers that sleep (adaptive ones).
	// Without them, or where the device has none, a poller with commands
	// outstanding does not sleep. Pollers that spin need none.
	Interrupts bool
	// CMB says what is put into the controller's own memory (controller memory
	// buffer), where it has one and supports that.
	CMB CMBUse
	// Arbitration asks for weighted round robin with urgent priority class,
	// where the controller offers it; nvme.QueueConfig.Class says which class a
	// queue is of. Nil: round robin.
	Arbitration *Arbitration
	// NoShadowDoorbells rings doorbells in the device only, although it offers
	// to be told through memory (Doorbell Buffer Config), as emulated devices
	// do to save accesses that they have to intercept.
	NoShadowDoorbells bool
	// EagerCQ rings the completion queue's doorbell in each pass that found
	// completions. By default it is rung before the controller could run out
	// of entries, and before the poller sleeps.
	EagerCQ bool
	// SGL says when scatter gather lists are used instead of PRP entries.
	SGL SGLPolicy
	// MaxTransfer is the most bytes that one command moves, where the
	// controller allows as much; larger transfers are split. 0: 1 MiB. 128 KiB
	// to 16 MiB. Every command has room for a PRP list for this size.
	MaxTransfer int
	// BounceSize is how many bytes of unregistered memory the commands of one
	// queue may transfer at a time; when it is used up, commands wait in order.
	// 0, or less than it must be: twice MaxTransfer.
	BounceSize int
	// ArenaSize is the size in bytes of the stretches of memory that DMA memory
	// is taken from; each is one mapping for the device. 0: 16 MiB. 2 MiB to
	// 1 GiB.
	ArenaSize int
	// NoHugePages takes pages of 4 KiB even if there are huge ones.
	NoHugePages bool
	// NoIOMMU allows to drive a device that no IOMMU keeps from the rest of
	// memory, in which a fault of the device or a bug here can overwrite
	// anything.
	NoIOMMU bool
	// Quirks are applied beside those that the device is known for.
	Quirks Quirk

	// Logger takes notable events. Nil: that of nvme.Config.
	Logger *slog.Logger
}

// CMBUse says what goes into a controller memory buffer; bits may be combined.
type CMBUse uint8

// What can be put into a controller memory buffer.
const (
	CMBQueues CMBUse = 1 << iota // submission queues
	CMBData                      // data of transfers to and from unregistered memory
)

// SGLPolicy says when scatter gather lists are used. Admin commands never have
// any, as the specification wants it (PCIe 2.2.1.2).
type SGLPolicy uint8

// The policies.
const (
	// SGLAuto: for what PRP entries cannot describe, which otherwise has to be
	// copied, and for transfers of 32 KiB and more, of which one descriptor says
	// as much as a list of PRP entries.
	SGLAuto SGLPolicy = iota
	// SGLNever: not at all.
	SGLNever
	// SGLAlways: for all transfers of I/O queues.
	SGLAlways
)

// Arbitration holds the weights of the classes (Base Specification 5.1.25.1.1,
// Set Features, Arbitration).
type Arbitration struct {
	// High, Medium and Low are how many commands in turn may be started of a
	// class, 1 to 256. 0: 16, 8 and 4.
	High, Medium, Low int
	// Burst is the most commands started from one queue at a time as a power
	// of two, 0 to 6; 7: no limit.
	Burst uint8
}

// dword returns the feature's value.
func (a *Arbitration) dword() uint32 {
	weight := func(v, def int) uint32 {
		if v == 0 {
			v = def
		}
		return uint32(v-1) & 0xff
	}
	return uint32(a.Burst&7) | weight(a.Low, 4)<<8 | weight(a.Medium, 8)<<16 | weight(a.High, 16)<<24
}

func (a *Arbitration) check() error {
	for _, v := range []int{a.High, a.Medium, a.Low} {
		if v < 0 || v > 256 {
			return fmt.Errorf("pcie: Config.Arbitration: weight %d, from 1 to 256 is possible", v)
		}
	}
	if a.Burst > 7 {
		return fmt.Errorf("pcie: Config.Arbitration: burst %d, 7 is the most", a.Burst)
	}
	return nil
}

func (c Config) withDefaults() (Config, error) {
	sizes := func(name string, v *int, def, lo, hi int) error {
		if *v == 0 {
			*v = def
		}
		if *v < lo || *v > hi {
			return fmt.Errorf("pcie: Config.%s %d, from %d to %d is possible", name, *v, lo, hi)
		}
		*v = (*v + pageSize - 1) &^ (pageSize - 1)
		return nil
	}
	if err := sizes("MaxTransfer", &c.MaxTransfer, 1<<20, 128<<10, 16<<20); err != nil {
		return c, err
	}
	if err := sizes("ArenaSize", &c.ArenaSize, 16<<20, 2<<20, 1<<30); err != nil {
		return c, err
	}
	if c.BounceSize < 0 || c.BounceSize > 1<<30 {
		return c, fmt.Errorf("pcie: Config.BounceSize %d, 1 GiB is the most", c.BounceSize)
	}
	c.BounceSize = max(c.BounceSize, 2*c.MaxTransfer)
	if c.SGL > SGLAlways {
		return c, fmt.Errorf("pcie: Config.SGL %d is no policy", c.SGL)
	}
	if c.Arbitration != nil {
		if err := c.Arbitration.check(); err != nil {
			return c, err
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// configOf takes a Config out of nvme.Config.
func configOf(cfg *nvme.Config) (Config, error) {
	var c Config
	switch t := cfg.Transport.(type) {
	case nil:
	case Config:
		c = t
	case *Config:
		if t != nil {
			c = *t
		}
	default:
		return c, fmt.Errorf("pcie: nvme.Config.Transport is of type %T, not pcie.Config", t)
	}
	if c.Logger == nil {
		c.Logger = cfg.Logger
	}
	return c, nil
}
