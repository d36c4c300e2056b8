package pcie

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/invariants"
)

// Errors of memory for DMA.
var (
	// ErrNotAllocated: the memory to be freed was not allocated, or is free
	// already.
	ErrNotAllocated = errors.New("pcie: memory is not allocated")
	// ErrMemory: memory cannot be registered: not page aligned, or part of it is
	// registered already, or it is not registered.
	ErrMemory = errors.New("pcie: memory cannot be registered")
)

// memory is all that the device can reach: arenas, and what the user has
// registered. Methods may be called from any goroutine.
type memory struct {
	dev   Device
	phys  PhysicalAddresser // nil with an IOMMU
	arena int               // size of an arena in bytes
	huge  bool
	lock  bool
	log   *slog.Logger

	table atomic.Pointer[regionTable]
	kept  atomic.Bool // the device may still write: nothing is freed

	mu       sync.Mutex
	space    iovaSpace
	arenas   []*arena
	users    []userRegion
	allocs   map[uintptr]allocation
	mappings int
	cut      bool // from the device, for good
	closed   bool
	told     bool // of huge pages
}

// allocation is memory that was handed out.
type allocation struct {
	a     *arena
	pages int
	user  bool
}

// userRegion is memory that the user registered; b keeps it from being
// collected.
type userRegion struct {
	region
	b []byte
}

func newMemory(dev Device, cfg *Config, limit uint64) *memory {
	m := &memory{
		dev: dev, arena: cfg.ArenaSize, huge: !cfg.NoHugePages, lock: dev.Info().Hardware, log: cfg.Logger,
		space:  newIOVASpace(dev.IOVARanges(), limit),
		allocs: map[uintptr]allocation{},
	}
	m.phys, _ = dev.(PhysicalAddresser)
	m.table.Store(&regionTable{})
	return m
}

// alloc returns n bytes, rounded up to pages, zeroed. With whole they are in
// one piece for the device also where there is no IOMMU.
func (m *memory) alloc(n int, whole, user bool) ([]byte, error) {
	if n <= 0 || n > 1<<40 {
		return nil, fmt.Errorf("pcie: %d bytes of DMA memory cannot be had", n)
	}
	pages := (n + pageSize - 1) >> pageShift
	whole = whole && m.phys != nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.cut {
		return nil, ErrGone
	}
	for _, a := range m.arenas {
		if b := a.take(pages, whole); b != nil {
			return m.taken(a, b, user), nil
		}
	}
	a, err := m.grow(max(n, m.arena))
	if err != nil {
		return nil, err
	}
	b := a.take(pages, whole)
	if b == nil {
		return nil, fmt.Errorf("pcie: %d bytes of contiguous memory cannot be had without an IOMMU and huge pages", n)
	}
	return m.taken(a, b, user), nil
}

func (m *memory) taken(a *arena, b []byte, user bool) []byte {
	m.allocs[address(b)] = allocation{a, len(b) >> pageShift, user}
	clear(b)
	return b
}

// grow makes one more arena of at least n bytes.
func (m *memory) grow(n int) (*arena, error) {
	if limit := m.dev.MaxMappings(); limit > 0 && m.mappings >= limit {
		return nil, fmt.Errorf("pcie: the device takes no more than %d DMA mappings (Config.ArenaSize makes larger ones)", limit)
	}
	var held uint64
	for _, a := range m.arenas {
		held += uint64(len(a.b))
	}
	a, note, err := newArena(n, held, m.huge, m.lock)
	if note != "" && !m.told {
		m.told = true
		m.log.Warn(note, "device", m.dev.Name())
	}
	if err != nil {
		return nil, err
	}
	if a.iova, a.pages, err = m.mapDMA(Memory{Bytes: a.b, FD: a.fd}, a.shift); err != nil {
		a.unmap()
		return nil, err
	}
	a.mapped = true
	m.arenas = append(m.arenas, a)
	m.publish()
	return a, nil
}

// mapDMA maps memory and returns where the device finds it.
func (m *memory) mapDMA(mem Memory, shift uint8) (iova uint64, pages []uint64, err error) {
	iova, err = m.space.take(uint64(len(mem.Bytes)), 1<<shift)
	if err != nil {
		return 0, nil, err
	}
	if err = m.dev.MapDMA(mem, iova); err != nil {
		m.space.give(iova)
		return 0, nil, fmt.Errorf("map %d bytes for DMA: %w", len(mem.Bytes), err)
	}
	m.mappings++
	if m.phys == nil {
		return iova, nil, nil
	}
	for off := 0; off < len(mem.Bytes); off += 1 << shift {
		p, err := m.phys.PhysicalAddress(mem.Bytes[off:min(off+1<<shift, len(mem.Bytes))])
		if err != nil {
			_ = m.unmapDMA(iova, len(mem.Bytes))
			return 0, nil, fmt.Errorf("physical address: %w", err)
		}
		pages = append(pages, p)
	}
	return iova, pages, nil
}

func (m *memory) unmapDMA(iova uint64, n int) error {
	err := m.dev.UnmapDMA(iova, uint64(n))
	if err == nil {
		m.mappings--
		m.space.give(iova)
	}
	return err
}

// reserve takes I/O virtual addresses that nothing is mapped at.
func (m *memory) reserve(n uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.space.take(n, hugeSize)
}

// unreserve gives them back.
func (m *memory) unreserve(at uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space.give(at)
}

// publish makes the table that queues translate by. m.mu is held.
func (m *memory) publish() {
	t := &regionTable{}
	for _, a := range m.arenas {
		if a.mapped {
			t.list = append(t.list, a.region())
		}
	}
	for _, u := range m.users {
		t.list = append(t.list, u.region)
	}
	slices.SortFunc(t.list, func(a, b region) int {
		if a.base < b.base {
			return -1
		}
		return 1
	})
	m.table.Store(t)
}

// release takes back what alloc returned. user tells who gives it back.
func (m *memory) release(b []byte, user bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := address(b)
	got, ok := m.allocs[at]
	if !ok || got.user != user {
		invariants.Assert(false, "DMA memory is freed that is not allocated")
		return fmt.Errorf("%w: %d bytes at %#x", ErrNotAllocated, len(b), at)
	}
	delete(m.allocs, at)
	off := int(at - address(got.a.b))
	whole := got.a.b[off : off+got.pages<<pageShift]
	if invariants.Enabled {
		for i := range whole {
			whole[i] = 0xdb // shows up where it is used nevertheless
		}
	}
	got.a.give(whole)
	if m.closed && got.a.used == 0 && !m.kept.Load() {
		m.drop(got.a)
	}
	return nil
}

// drop ends an arena that nothing uses.
func (m *memory) drop(a *arena) {
	m.arenas = slices.DeleteFunc(m.arenas, func(x *arena) bool { return x == a })
	a.unmap()
}

// translate returns where the device finds b, which is in one region.
func (m *memory) translate(b []byte) (uint64, bool) {
	p := address(b)
	if r := m.table.Load().find(p, uintptr(len(b))); r != nil {
		return r.at(p), true
	}
	return 0, false
}

// cutOff takes all memory from the device, and reports whether that worked for
// all of it: the last resort against a device that goes on with its DMA.
func (m *memory) cutOff() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = true
	var errs []error
	for _, a := range m.arenas {
		if a.mapped {
			a.mapped = false
			errs = append(errs, m.unmapDMA(a.iova, len(a.b)))
		}
	}
	for _, u := range m.users {
		errs = append(errs, m.unmapDMA(u.iova, len(u.b)))
	}
	m.users = nil
	m.publish()
	return errors.Join(errs...)
}

// keep leaves all memory where it is, for good.
func (m *memory) keep() { m.kept.Store(true) }

// close takes all memory from the device. What the user has still allocated
// stays mapped in the process until it is freed.
func (m *memory) close() error {
	err := m.cutOff()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, got := range m.allocs {
		invariants.Assert(got.user || m.kept.Load(), "DMA memory of a queue is left over")
	}
	for _, a := range slices.Clone(m.arenas) {
		if a.used == 0 && !m.kept.Load() {
			m.drop(a)
		}
	}
	return err
}
