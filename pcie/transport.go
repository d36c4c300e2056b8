package pcie

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

func init() { nvme.Register("pcie", open) }

// openFunction opens the PCI function that an address names.
func openFunction(traddr string, c *Config) (Device, error) {
	return OpenVFIO(context.Background(), traddr, VFIOConfig{NoIOMMU: c.NoIOMMU})
}

// open makes the transport for nvme.Open.
func open(addr nvme.Address, cfg *nvme.Config) (nvme.Transport, error) {
	return Factory(openFunction)(addr, cfg)
}

// Factory returns what nvme.Register takes, for devices that are opened by the
// transport address: a package with another way to a Device registers itself
// with it. The configuration of the transport is a Config.
func Factory(open func(traddr string, c *Config) (Device, error)) nvme.Factory {
	return func(addr nvme.Address, cfg *nvme.Config) (nvme.Transport, error) {
		return openTransport(addr.Traddr, cfg, open)
	}
}

func openTransport(traddr string, cfg *nvme.Config, open func(string, *Config) (Device, error)) (nvme.Transport, error) {
	c, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	dev, err := open(traddr, &c)
	if err != nil {
		return nil, err
	}
	t, err := New(dev, &c)
	if err != nil {
		dev.Close()
		return nil, err
	}
	return t, nil
}

// transport implements nvme.Transport for one device.
type transport struct {
	dev    Device
	cfg    Config
	quirks Quirk
	mem    *memory
	caps   atomic.Uint64 // CAP as last read and corrected
	admin  atomic.Pointer[nvme.QueuePair]
	id     atomic.Pointer[nvme.IdentifyController]
	cmb    atomic.Pointer[cmb]

	// Commands that make and delete queues hold assoc for reading, what starts
	// and ends an association for writing.
	assoc   sync.RWMutex
	current *association
	dead    error // the device could not be quieted: it is not used again

	mu      sync.Mutex
	queues  map[*queue]struct{} // those that are attached
	vectors map[int]bool        // interrupt vectors in use
}

// New returns the transport that drives dev, for nvme.NewController. cfg may be
// nil. The transport closes dev; if New fails, dev is still the caller's.
func New(dev Device, cfg *Config) (nvme.Transport, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &transport{
		dev: dev, cfg: c, quirks: quirksOf(dev.Info()) | c.Quirks,
		queues: map[*queue]struct{}{}, vectors: map[int]bool{},
	}
	if t.quirks&QuirkNotStandard != 0 {
		return nil, fmt.Errorf("%w: %s: %04x:%04x is not a standard NVMe controller", nvme.ErrUnsupported, dev.Name(), dev.Info().Vendor, dev.Info().Device)
	}
	if _, phys := dev.(PhysicalAddresser); phys && !c.NoIOMMU {
		return nil, fmt.Errorf("%w: %s: no IOMMU protects memory from the device (Config.NoIOMMU allows that)", nvme.ErrUnsupported, dev.Name())
	}
	limit := uint64(math.MaxUint64)
	if t.quirks&QuirkDMA48 != 0 {
		limit = 1<<48 - 1
	}
	t.mem = newMemory(dev, &t.cfg, limit)
	dev.OnGone(t.vanished)
	return t, nil
}

// Name implements nvme.Transport.
func (t *transport) Name() string { return "pcie" }

// Address implements nvme.Transport.
func (t *transport) Address() string { return "pcie " + t.dev.Name() }

// Close implements nvme.Transport.
func (t *transport) Close() error {
	err := t.mem.close()
	if e := t.dev.Close(); e != nil {
		err = e
	}
	return err
}

// Property implements nvme.Transport.
func (t *transport) Property(_ context.Context, offset uint32, size int) (uint64, error) {
	switch size {
	case 4:
		v, err := t.dev.Read32(offset)
		return uint64(v), err
	case 8:
		v, err := t.dev.Read64(offset)
		if err == nil && offset == nvme.RegCAP {
			v = uint64(t.quirks.adjust(nvme.CAP(v)))
		}
		return v, err
	}
	return 0, fmt.Errorf("%w: property of %d bytes", nvme.ErrLength, size)
}

// SetProperty implements nvme.Transport.
func (t *transport) SetProperty(ctx context.Context, offset uint32, size int, v uint64) error {
	switch {
	case size == 4 && offset == nvme.RegCC && !nvme.CC(v).EN():
		return t.clearEN(ctx, uint32(v))
	case size == 4:
		return t.dev.Write32(offset, uint32(v))
	case size == 8:
		return t.dev.Write64(offset, v)
	}
	return fmt.Errorf("%w: property of %d bytes", nvme.ErrLength, size)
}

// clearEN writes CC with EN clear, and gives the controller the time it may
// need before it is looked at.
func (t *transport) clearEN(ctx context.Context, cc uint32) error {
	if err := t.dev.Write32(nvme.RegCC, cc); err != nil {
		return err
	}
	if t.quirks&QuirkDelayReady != 0 {
		return sleep(ctx, readyDelay)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Limits implements nvme.Transport. In passing it learns what the controller
// offers.
func (t *transport) Limits(id *nvme.IdentifyController) nvme.Limits {
	if id != nil {
		t.id.Store(id)
	}
	l := nvme.Limits{MaxTransfer: uint32(t.maxTransfer()), ControllerID: nvme.ControllerIDDynamic}
	if id != nil {
		l.Stripe = t.quirks.stripe(id, t.capp().MinPageSize())
	}
	if t.cfg.Arbitration != nil {
		l.Arbitration = nvme.CCAMSWeightedRoundRobin
	}
	return l
}

// maxTransfer is the most bytes of one command. Pages in the controller's memory
// hold data alone, so that lists must do with the tracker's own.
func (t *transport) maxTransfer() int {
	if t.cfg.CMB&CMBData != 0 {
		return min(t.cfg.MaxTransfer, perPage*pageSize)
	}
	return t.cfg.MaxTransfer
}

// mostPages is how many pages the data of one command can touch.
func (t *transport) mostPages(admin bool) int {
	most := t.maxTransfer()
	if id := t.id.Load(); id != nil && !admin {
		if limit := id.MaxTransferSize(t.capp().MinPageSize()); limit != 0 && limit < uint64(most) {
			most = int(limit)
		}
	}
	return max(most>>pageShift, 2) + 1
}

// placement returns what the controller takes as the place of data.
func (t *transport) placement(admin bool) placement {
	p := placement{sgl: SGLNever}
	id := t.id.Load()
	if admin || id == nil || t.quirks&QuirkNoSGL != 0 {
		return p
	}
	switch id.SGLS & nvme.SGLSMask {
	case nvme.SGLSByteAligned:
		p.sgl = t.cfg.SGL
	case nvme.SGLSDwordAligned:
		p.sgl, p.sglAlign = t.cfg.SGL, 3
	}
	return p
}

func (t *transport) capp() nvme.CAP { return nvme.CAP(t.caps.Load()) }

func (t *transport) stride() uint32 { return t.capp().DoorbellStride() }

// cqSize returns the size of a completion queue. Twice that of the submission
// queue lets its doorbell wait.
func (t *transport) cqSize(qid uint16, sq int) int {
	most := nvme.MaxAdminQueueEntries
	if qid != 0 {
		most = int(t.capp().MaxQueueEntries())
	}
	if t.cfg.EagerCQ {
		return sq
	}
	return max(sq, min(2*sq, most))
}

// attached notes a queue that is told when the device goes.
func (t *transport) attached(q *queue, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if on {
		t.queues[q] = struct{}{}
	} else {
		delete(t.queues, q)
	}
}

// vanished tells all queues that the device is gone. Any goroutine.
func (t *transport) vanished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q := range t.queues {
		go q.qp.Poller().CallAnyway(func() { q.lose(ErrGone) })
	}
}
