package backend

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

const size = 4 << 20

// stores are the backends that keep data, by name.
func stores(t *testing.T) map[string]func() Backend {
	memory := func(c MemoryConfig) func() Backend {
		return func() Backend {
			m, err := NewMemory(c)
			must(t, err)
			return m
		}
	}
	return map[string]func() Backend{
		"heap":   memory(MemoryConfig{Size: size, Heap: true}),
		"mapped": memory(MemoryConfig{Size: size}),
		"huge":   memory(MemoryConfig{Size: size, HugePages: true, Populate: true}),
		"file": func() Backend {
			f, err := NewFile(FileConfig{Path: filepath.Join(t.TempDir(), "disk"), Size: size})
			must(t, err)
			return f
		},
		"wrapped": func() Backend {
			return NewFail(NewStall(NewRate(NewLatency(NewHeap(size), 0), Limit{})))
		},
	}
}

// TestStores compares every store with a plain slice of bytes under random
// operations.
func TestStores(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, open())
			r := rand.New(rand.NewPCG(1, 2))
			want := make([]byte, size)
			for range 150 {
				n := int64(512 * (1 + r.IntN(64)))
				if r.IntN(8) == 0 {
					n = 2 << 20
				}
				off := r.Int64N((size-n)/512+1) * 512
				data := pattern(byte(r.Int()), int(n))
				at := want[off : off+n]
				switch r.IntN(8) {
				case 0, 1:
					l.do(Write, off, n, data)
					copy(at, data)
				case 2:
					l.do(WriteZeroes, off, n, nil)
					clear(at)
				case 3:
					l.do(Deallocate, off, n, nil)
					if l.b.Info().Zeroes {
						clear(at)
					}
				case 4:
					l.do(Compare, off, n, bytes.Clone(at))
					at := bytes.Clone(at)
					at[r.IntN(len(at))] ^= 1
					l.fails(Compare, off, n, at, nvme.StatusCompareFailure)
				case 5:
					old := bytes.Clone(at)
					if j := l.await(l.start(Op{Kind: CompareAndWrite, Offset: off, Length: n, Data: old, Second: data})); j.op.Status != 0 {
						t.Fatalf("compare and write: %v", j.op.Status)
					}
					copy(at, data)
					if j := l.await(l.start(Op{Kind: CompareAndWrite, Offset: off, Length: n, Data: pattern(77, int(n)), Second: old})); j.op.Status != nvme.StatusCompareFailure {
						t.Fatalf("compare and write of something else: %v", j.op.Status)
					}
				case 6:
					l.do(Flush, 0, 0, nil)
					l.do(Verify, off, n, nil)
				}
				if got := l.do(Read, off, n, nil); !bytes.Equal(got, want[off:off+n]) {
					t.Fatalf("read of %d bytes at %d differs", n, off)
				}
			}
		})
	}
}

func TestRange(t *testing.T) {
	const bad = nvme.StatusLBAOutOfRange | nvme.StatusDNR
	all := stores(t)
	all["null"] = func() Backend { return NewNull(size) }
	for name, open := range all {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, open())
			b := make([]byte, 1024)
			for _, k := range []Kind{Read, Write, Compare, WriteZeroes, Deallocate, Verify, CompareAndWrite} {
				l.fails(k, size-512, 1024, b, bad)
				l.fails(k, size, 512, b[:512], bad)
				l.fails(k, -512, 1024, b, bad)
				l.fails(k, 1<<62, 1024, b, bad)
			}
			l.do(Read, size-512, 512, nil)
		})
	}
}

func TestResize(t *testing.T) {
	for name, open := range map[string]func() Backend{
		"mapped": func() Backend {
			m, err := NewMemory(MemoryConfig{Size: size, MaxSize: 3 * size})
			must(t, err)
			return m
		},
		"file": func() Backend {
			f, err := NewFile(FileConfig{Path: filepath.Join(t.TempDir(), "disk"), Size: size})
			must(t, err)
			return f
		},
		"wrapped": func() Backend {
			m, err := NewMemory(MemoryConfig{Size: size, MaxSize: 3 * size, Heap: true})
			must(t, err)
			return NewStall(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, open())
			r := l.b.(Resizer)
			must(t, r.Resize(2*size))
			if got := l.b.Info().Size; got != 2*size {
				t.Fatalf("size %d", got)
			}
			l.do(Write, size, 512, pattern(1, 512))
			must(t, r.Resize(size))
			l.fails(Read, size, 512, nil, nvme.StatusLBAOutOfRange|nvme.StatusDNR)
			must(t, r.Resize(3*size))
			if got := l.do(Read, size, 512, nil); !isZero(got) {
				t.Error("what was cut off is back")
			}
			if err := r.Resize(-1); !errors.Is(err, ErrResize) {
				t.Errorf("Resize(-1): %v", err)
			}
		})
	}
	m := NewHeap(512)
	if err := m.Resize(1024); !errors.Is(err, ErrResize) {
		t.Errorf("beyond the maximum: %v", err)
	}
	mapped, err := NewMemory(MemoryConfig{Size: size, MaxSize: 3 * size})
	must(t, err)
	must(t, mapped.Close())
	if err := mapped.Resize(2 * size); !errors.Is(err, ErrResize) || mapped.Info().Size != 0 {
		t.Errorf("after the end: %v, size %d", err, mapped.Info().Size)
	}
	must(t, mapped.Close())
	if err := NewFail(&closeOnly{}).Resize(512); !errors.Is(err, ErrResize) {
		t.Errorf("what cannot be resized: %v", err)
	}
	n := NewNull(512)
	must(t, n.Resize(1024))
	if err := n.Resize(-1); !errors.Is(err, ErrResize) || n.Info().Size != 1024 {
		t.Errorf("null: %v, %d bytes", err, n.Info().Size)
	}
}

// closeOnly is a backend that cannot do anything.
type closeOnly struct{ err error }

func (*closeOnly) Info() Info                             { return Info{} }
func (c *closeOnly) Open(*poller.Poller) (Channel, error) { return nil, c.err }
func (c *closeOnly) Close() error                         { return c.err }

func TestOpenFails(t *testing.T) {
	want := errors.New("no")
	b := &closeOnly{want}
	p, err := poller.New(poller.Config{Unpinned: true})
	must(t, err)
	for _, w := range []Backend{NewLatency(b, 1), NewRate(b, Limit{}), NewStall(b), NewFail(b)} {
		if _, err := w.Open(p); !errors.Is(err, want) {
			t.Errorf("%T: %v", w, err)
		}
		if err := w.Close(); !errors.Is(err, want) {
			t.Errorf("closing %T: %v", w, err)
		}
	}
	must(t, p.Close())
}

func TestBadConfig(t *testing.T) {
	for _, c := range []MemoryConfig{{Size: -1}, {Size: 10, MaxSize: 5}} {
		if _, err := NewMemory(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := NewMemory(MemoryConfig{Size: 1 << 60}); err == nil {
		t.Error("an exbibyte")
	}
	dir := t.TempDir()
	for _, c := range []FileConfig{{Path: dir + "/x", Size: -1}, {Path: dir + "/x", Workers: -1}, {Path: dir + "/x", Workers: 5000}} {
		if _, err := NewFile(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := NewFile(FileConfig{Path: dir + "/missing", ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	must(t, os.WriteFile(path, pattern(1, 4096), 0o600))
	f, err := NewFile(FileConfig{Path: path, ReadOnly: true})
	must(t, err)
	l := newLab(t, f)
	if got := l.do(Read, 0, 4096, nil); !bytes.Equal(got, pattern(1, 4096)) {
		t.Error("read differs")
	}
	l.fails(Write, 0, 512, make([]byte, 512), nvme.StatusNamespaceWriteProtected|nvme.StatusDNR)
}

// TestFileErrors has the file become shorter than it was.
func TestFileErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	f, err := NewFile(FileConfig{Path: path, Size: size})
	must(t, err)
	l := newLab(t, f)
	must(t, os.Truncate(path, 1024))
	l.fails(Read, 512, 1024, nil, nvme.StatusUnrecoveredReadError)
	l.fails(Compare, 512, 1024, make([]byte, 1024), nvme.StatusUnrecoveredReadError)
	l.fails(Verify, 4096, 512, nil, nvme.StatusUnrecoveredReadError)
	l.do(Write, 8192, 512, pattern(1, 512))
	if j := l.await(l.start(Op{Kind: Write, FUA: true, Length: 512, Data: pattern(2, 512)})); j.op.Status != 0 {
		t.Errorf("forced write: %v", j.op.Status)
	}
}

func TestNull(t *testing.T) {
	l := newLab(t, NewNull(1<<40))
	l.do(Write, 1<<39, 4096, nil)
	if got := l.do(Read, 1<<39, NullMaxRead, nil); !isZero(got) || len(got) != NullMaxRead {
		t.Error("reads something")
	}
	l.fails(Read, 0, NullMaxRead+1, nil, nvme.StatusInvalidField|nvme.StatusDNR)
	l.do(Compare, 0, 512, make([]byte, 512))
	l.fails(Compare, 0, 512, pattern(1, 512), nvme.StatusCompareFailure)
}

// TestLocks checks that the ranges of locks cover every range of bytes, in
// rising order.
func TestLocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		op := Op{Offset: r.Int64N(1 << 32), Length: r.Int64N(100 << lockShift)}
		a, aEnd, b, bEnd := span(&op)
		if a > aEnd || b > bEnd || b < bEnd && aEnd > b || aEnd > lockCount || bEnd > lockCount {
			t.Fatalf("%d bytes at %d: locks %d to %d and %d to %d", op.Length, op.Offset, a, aEnd, b, bEnd)
		}
		for off := op.Offset; off < op.Offset+op.Length; off += 1 << lockShift {
			if i := off >> lockShift % lockCount; !(i >= a && i < aEnd || i >= b && i < bEnd) {
				t.Fatalf("%d bytes at %d: lock %d is missing", op.Length, op.Offset, i)
			}
		}
	}
	var l locks
	op := Op{Offset: 63 << lockShift, Length: 2 << lockShift}
	l.lock(&op)
	if !l[63].held.Load() || !l[0].held.Load() || l[1].held.Load() {
		t.Error("wrong locks are held")
	}
	l.unlock(&op)
	if l != (locks{}) {
		t.Error("locks are held still")
	}
}
