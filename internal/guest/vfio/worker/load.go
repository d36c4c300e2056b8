//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// load writes and reads from the core of a poller, and verifies every byte. Each
// of its slots has blocks of its own, so that there is one right answer.
type load struct {
	c      *nvme.Controller
	queues int
	depth  int    // per queue
	sizes  []int  // bytes, to draw from
	shifts []int  // bytes that buffers begin after a page, to draw from
	heap   bool   // memory of Go instead of the controller's
	ops    int    // per slot; 0: until stopped
	base   uint64 // first block
	stop   atomic.Bool
	done   atomic.Uint64 // operations
	failed atomic.Uint64

	// tolerate: failures are counted, and the slot that has one ends.
	tolerate bool

	rng    *rand.Rand
	active int
	err    error
	ended  chan struct{}
}

type slot struct {
	l       *load
	q       *nvme.NamespaceQueue
	mem     []byte
	first   uint64 // block
	blocks  uint64 // that it has
	gen     uint32
	left    int
	lba     uint64
	n       uint64
	buf     []byte
	reading bool
}

// run makes the queues and runs to the end.
func (l *load) run(ctx context.Context, p *poller.Poller, ns *nvme.Namespace) (err error) {
	most := 0
	for _, n := range l.sizes {
		most = max(most, n)
	}
	l.rng = rand.New(rand.NewPCG(uint64(l.depth), uint64(l.queues)))
	l.ended = make(chan struct{})
	span := uint64(2 * most / ns.BlockSize())
	total := uint64(l.queues*l.depth) * span
	if l.base+total > ns.Blocks() {
		return fmt.Errorf("%d blocks are too few for %d slots of %d", ns.Blocks(), l.queues*l.depth, span)
	}
	var slots []*slot
	for i := range l.queues {
		q, err := ns.Queue(ctx, p, nvme.QueueConfig{Size: l.depth + 1})
		if err != nil {
			return fmt.Errorf("queue %d: %w", i, err)
		}
		defer func() { err = errors.Join(err, q.Close(ctx)) }()
		for range l.depth {
			s := &slot{l: l, q: q, first: l.base + uint64(len(slots))*span, blocks: span, left: l.ops}
			if s.mem, err = l.memory(most + 4096); err != nil {
				return err
			}
			defer l.free(s.mem)
			slots = append(slots, s)
		}
	}
	l.active = len(slots)
	if err := p.Call(ctx, func() {
		for _, s := range slots {
			s.next()
		}
	}); err != nil {
		return err
	}
	select {
	case <-l.ended:
		return l.err
	case <-time.After(5 * patience):
		return fmt.Errorf("load hangs after %d operations, controller %v", l.done.Load(), l.c.State())
	}
}

func (l *load) memory(n int) ([]byte, error) {
	if l.heap {
		return make([]byte, n), nil
	}
	return l.c.Alloc(n)
}

func (l *load) free(b []byte) {
	if !l.heap {
		_ = l.c.Free(b)
	}
}

// next begins a slot's next pair of a write and a read, or ends it.
func (s *slot) next() {
	l := s.l
	if l.err != nil || l.stop.Load() || l.ops > 0 && s.left == 0 {
		s.end()
		return
	}
	s.left--
	bs := s.q.BlockSize()
	size := l.sizes[l.rng.IntN(len(l.sizes))]
	shift := l.shifts[l.rng.IntN(len(l.shifts))]
	s.n = uint64(size / bs)
	s.lba = s.first + l.rng.Uint64N(s.blocks-s.n+1)
	s.buf = s.mem[shift:][:size]
	s.gen++
	for i := range s.n {
		pattern.Fill(s.buf[int(i)*bs:][:bs], s.lba+i, s.gen)
	}
	s.reading = false
	s.posted(s.q.Write(s.buf, s.lba, uint32(s.n), completed, s))
}

func (s *slot) end() {
	if s.l.active--; s.l.active == 0 {
		close(s.l.ended)
	}
}

// posted takes the result of a submission.
func (s *slot) posted(err error) {
	if err == nil {
		return
	}
	s.fail(err)
}

func (s *slot) fail(err error) {
	l := s.l
	l.failed.Add(1)
	if l.err == nil && !l.tolerate {
		l.err = fmt.Errorf("%d blocks at %d, reading %v: %w", s.n, s.lba, s.reading, err)
	}
	s.end()
}

func completed(arg any, st nvme.Status) {
	s := arg.(*slot)
	s.l.done.Add(1)
	if !st.OK() {
		s.fail(st)
		return
	}
	if !s.reading {
		s.reading = true
		clear(s.buf)
		s.posted(s.q.Read(s.buf, s.lba, uint32(s.n), completed, s))
		return
	}
	bs := s.q.BlockSize()
	for i := range s.n {
		b := s.buf[int(i)*bs:][:bs]
		if !pattern.Holds(b, s.lba+i, s.gen) {
			s.l.tolerate = false
			s.fail(fmt.Errorf("block %d holds %s, want generation %d", s.lba+i, pattern.Describe(b), s.gen))
			return
		}
	}
	s.next()
}
