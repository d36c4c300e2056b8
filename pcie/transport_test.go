package pcie

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// lab is a controller on a fake device, with a poller that runs.
type lab struct {
	t testing.TB
	d *fakeDevice
	p *poller.Poller
	c *nvme.Controller
	x *transport
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newPoller(t testing.TB) *poller.Poller {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// newLab opens a controller on d, which runs.
func newLab(t testing.TB, d *fakeDevice, cfg Config, ncfg nvme.Config) *lab {
	t.Helper()
	l := &lab{t: t, d: d, p: newPoller(t)}
	tr, err := New(d, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.x = tr.(*transport)
	ncfg.Poller = l.p
	if ncfg.ReconnectDelay == 0 {
		ncfg.ReconnectDelay = time.Millisecond
	}
	if l.c, err = nvme.NewController(testContext(t), tr, &ncfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.c.Close(testContext(t)) })
	return l
}

func (l *lab) namespace() *nvme.Namespace {
	l.t.Helper()
	ns, err := l.c.Namespace(testContext(l.t), 1)
	if err != nil {
		l.t.Fatal(err)
	}
	return ns
}

func (l *lab) queue(size int) *nvme.NamespaceQueue {
	l.t.Helper()
	qp, err := l.c.OpenQueue(testContext(l.t), l.p, nvme.QueueConfig{Size: size})
	if err != nil {
		l.t.Fatal(err)
	}
	q, err := qp.Bind(l.namespace())
	if err != nil {
		l.t.Fatal(err)
	}
	return q
}

// result collects completions on the core.
type result struct{ ch chan nvme.Status }

func resultDone(arg any, st nvme.Status) { arg.(*result).ch <- st }

// do posts one I/O on the core and waits for it.
func (l *lab) do(q *nvme.NamespaceQueue, submit func(done nvme.Done, arg any) error) nvme.Status {
	l.t.Helper()
	r := &result{make(chan nvme.Status, 1)}
	var err error
	if e := l.p.Call(testContext(l.t), func() { err = submit(resultDone, r) }); e != nil || err != nil {
		l.t.Fatal(e, err)
	}
	select {
	case st := <-r.ch:
		return st
	case <-testContext(l.t).Done():
		l.t.Fatal("no completion")
		return 0
	}
}

// fill fills b with what a seed stands for.
func fill(b []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// From address to verified data and back to nothing, with the blocking calls,
// whose memory is not registered.
func TestLife(t *testing.T) {
	d := newFake(t).run()
	l := newLab(t, d, Config{}, nvme.Config{})
	ns := l.namespace()
	for _, n := range []int{512, 4096, 8192, 12288 + 512, 1 << 20, 5<<20 + 512} {
		w, r := make([]byte, n), make([]byte, n)
		fill(w, uint64(n))
		if _, err := ns.WriteAt(w, 1<<20); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(d.disk[1<<20:1<<20+n], w) {
			t.Fatalf("%d bytes: not what was written", n)
		}
		if _, err := ns.ReadAt(r, 1<<20); err != nil || !bytes.Equal(r, w) {
			t.Fatalf("%d bytes: not what was read, %v", n, err)
		}
	}
	if _, err := ns.ReadAt(make([]byte, 512), int64(len(d.disk))); err != io.EOF {
		t.Error(err)
	}
	if err := l.c.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"master true", "enable ams=0", "feature 0xb=", "feature 0x7=", "create cq 1 size 512 iv false/0", "create sq 1 size 256 class 2",
		"delete sq 1", "delete cq 1", "shutdown", "master false", "unmap",
	}
	got := d.called()
	for _, w := range want {
		if i := slices.IndexFunc(got, func(s string) bool { return len(s) >= len(w) && s[:len(w)] == w }); i < 0 {
			t.Errorf("no %q, or too early: %q", w, got)
		} else {
			got = got[i+1:]
		}
	}
}

// Reads and writes of every alignment and size, from registered memory, from
// memory that is not, and from pieces of both, say the same with PRP entries
// and with SGLs of both alignments.
func TestPlacement(t *testing.T) {
	for name, sgls := range map[string]uint32{"PRP": nvme.SGLSNone, "SGL": nvme.SGLSByteAligned, "dword SGL": nvme.SGLSDwordAligned} {
		for _, policy := range []SGLPolicy{SGLAuto, SGLNever, SGLAlways} {
			t.Run(fmt.Sprintf("%s %d", name, policy), func(t *testing.T) {
				d := newFake(t)
				d.sgls, d.mdts = sgls, 0
				d.run()
				l := newLab(t, d, Config{SGL: policy, MaxTransfer: 4 << 20}, nvme.Config{})
				q := l.queue(32)
				const size = 4 << 20
				mem, err := l.c.Alloc(size + 2*pageSize)
				if err != nil {
					t.Fatal(err)
				}
				defer l.c.Free(mem)
				heap := make([]byte, size+2*pageSize)
				for _, n := range []int{512, 3584, 4096, 4608, 8192, 8704, 16384, 128 << 10, 2<<20 + 4096, size} {
					offsets := []int{0, 4, 512, 1, 4092, 2048}
					if n > 1<<20 { // the data takes its time
						offsets = []int{0, 1, 4092}
					}
					for _, off := range offsets {
						for _, b := range [][]byte{mem[off : off+n], heap[off : off+n]} {
							l.roundTrip(q, [][]byte{b}, n)
						}
					}
				}
				l.pieces(q, mem, heap)
			})
		}
	}
}

// pieces transfers vectors of all kinds.
func (l *lab) pieces(q *nvme.NamespaceQueue, mem, heap []byte) {
	l.t.Helper()
	for name, v := range map[string][][]byte{
		"pages":         {mem[:4096], mem[8192:12288], mem[4096:8192]},
		"long pages":    {mem[2048:8192], mem[16384:32768], mem[65536 : 65536+2048]},
		"jagged":        {mem[100*4 : 612*4], mem[4096+512 : 4096+1024]},
		"odd":           {mem[1:513], mem[1024:1536]},
		"halves":        {mem[3:259], mem[1024:1280]},
		"foreign":       {heap[:4096], mem[:4096]},
		"empty between": {mem[:4096], nil, {}, mem[4096:8192]},
		"crumbs":        crumbs(mem, 600, 512),
		"small crumbs":  crumbs(mem, 1024, 4),
	} {
		n := 0
		for _, b := range v {
			n += len(b)
		}
		l.t.Log(name)
		l.roundTrip(q, v, n)
	}
}

// crumbs returns n pieces of size bytes each, apart from each other.
func crumbs(b []byte, n, size int) (v [][]byte) {
	for i := range n {
		v = append(v, b[i*(size+4):][:size])
	}
	return v
}

// roundTrip writes v to the disk, reads it back to the same place, and checks
// all of it.
func (l *lab) roundTrip(q *nvme.NamespaceQueue, v [][]byte, n int) {
	l.t.Helper()
	want := make([]byte, n)
	fill(want, uint64(n))
	rest := want
	for _, b := range v {
		rest = rest[copy(b, rest):]
	}
	blocks := uint32(n / fakeBlock)
	op := func(write bool) nvme.Status {
		return l.do(q, func(done nvme.Done, arg any) error {
			switch {
			case len(v) == 1 && write:
				return q.Write(v[0], 7, blocks, done, arg)
			case len(v) == 1:
				return q.Read(v[0], 7, blocks, done, arg)
			case write:
				return q.WriteV(v, 7, blocks, done, arg)
			}
			return q.ReadV(v, 7, blocks, done, arg)
		})
	}
	if st := op(true); !st.OK() {
		l.t.Fatal(st)
	}
	if !bytes.Equal(l.d.disk[7*fakeBlock:7*fakeBlock+n], want) {
		l.t.Fatalf("%d bytes at %#x in %d pieces: wrong on the disk", n, address(v[0]), len(v))
	}
	for _, b := range v {
		clear(b)
	}
	if st := op(false); !st.OK() {
		l.t.Fatal(st)
	}
	rest = want
	for i, b := range v {
		if !bytes.Equal(b, rest[:len(b)]) {
			l.t.Fatalf("%d bytes at %#x: piece %d of %d is wrong", n, address(b), i, len(v))
		}
		rest = rest[len(b):]
	}
}

// A reset under load loses nothing: what was outstanding is sent again.
func TestResetUnderLoad(t *testing.T) {
	d := newFake(t).run()
	l := newLab(t, d, Config{}, nvme.Config{})
	q := l.queue(16)
	for range 5 {
		d.deaf.Store(true)
		ch := make(chan nvme.Status, 12)
		r := &result{ch}
		if err := l.p.Call(testContext(t), func() {
			for i := range 12 {
				if err := q.Read(make([]byte, 4096), uint64(i*8), 8, resultDone, r); err != nil {
					t.Error(err)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		d.deaf.Store(false)
		if err := l.c.Reset(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for range 12 {
			if st := <-ch; !st.OK() {
				t.Fatal(st)
			}
		}
	}
}

// A device that is pulled out fails everything with a typed error, at once.
func TestGone(t *testing.T) {
	d := newFake(t).run()
	l := newLab(t, d, Config{}, nvme.Config{})
	q := l.queue(16)
	d.deaf.Store(true)
	ch := make(chan nvme.Status, 3)
	r := &result{ch}
	if err := l.p.Call(testContext(t), func() {
		for range 3 {
			if err := q.Read(make([]byte, 4096), 0, 8, resultDone, r); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	d.remove()
	for range 3 {
		if st := <-ch; st.OK() || !st.IsPath() {
			t.Error(st)
		}
	}
	_, err := l.namespace().ReadAt(make([]byte, 512), 0)
	if !errors.Is(err, ErrGone) || !errors.Is(err, nvme.ErrGone) {
		t.Error(err)
	}
}
