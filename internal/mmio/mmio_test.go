package mmio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// pattern fills b with bytes that all differ, and differ from 0 and 0xff.
func pattern(b []byte) {
	for i := range b {
		b[i] = byte(0x11 + i*3)
	}
}

// access is one width, reading and writing through a window and a register.
type access struct {
	name  string
	width uint64
	read  func(w Window, off uint64) (uint64, error)
	write func(w Window, off uint64, v uint64) error
}

var accesses = []access{
	{"8", 1,
		func(w Window, off uint64) (uint64, error) { v, err := w.Read8(off); return uint64(v), err },
		func(w Window, off uint64, v uint64) error { return w.Write8(off, uint8(v)) }},
	{"16", 2,
		func(w Window, off uint64) (uint64, error) { v, err := w.Read16(off); return uint64(v), err },
		func(w Window, off uint64, v uint64) error { return w.Write16(off, uint16(v)) }},
	{"32", 4,
		func(w Window, off uint64) (uint64, error) { v, err := w.Read32(off); return uint64(v), err },
		func(w Window, off uint64, v uint64) error { return w.Write32(off, uint32(v)) }},
	{"64", 8,
		func(w Window, off uint64) (uint64, error) { return w.Read64(off) },
		func(w Window, off uint64, v uint64) error { return w.Write64(off, v) }},
	{"register 32", 4,
		func(w Window, off uint64) (uint64, error) {
			r, err := w.Register32(off)
			if err != nil {
				return 0, err
			}
			return uint64(r.Load()), nil
		},
		func(w Window, off uint64, v uint64) error {
			r, err := w.Register32(off)
			if err == nil {
				r.Store(uint32(v))
			}
			return err
		}},
	{"register 64", 8,
		func(w Window, off uint64) (uint64, error) {
			r, err := w.Register64(off)
			if err != nil {
				return 0, err
			}
			return r.Load(), nil
		},
		func(w Window, off uint64, v uint64) error {
			r, err := w.Register64(off)
			if err == nil {
				r.Store(v)
			}
			return err
		}},
}

// aligned returns n bytes that begin at a multiple of 8.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return wordBytes(words)[:n]
}

// little returns b as a little-endian number.
func little(b []byte) uint64 {
	var v [8]byte
	copy(v[:], b)
	return binary.LittleEndian.Uint64(v[:])
}

// Every access has exactly its width: what it reads is that and no more, and
// what it writes leaves the neighbours alone.
func TestWidthAndNeighbours(t *testing.T) {
	const size = 48
	for _, a := range accesses {
		t.Run(a.name, func(t *testing.T) {
			for off := uint64(0); off+a.width <= size; off += a.width {
				b := aligned(size)
				pattern(b)
				w := NewWindow(b)
				got, err := a.read(w, off)
				if want := little(b[off : off+a.width]); err != nil || got != want {
					t.Errorf("read at %d: %#x, %v, want %#x", off, got, err, want)
				}
				want := bytes.Clone(b)
				v := uint64(0xfedcba9876543210)
				var le [8]byte
				binary.LittleEndian.PutUint64(le[:], v)
				copy(want[off:off+a.width], le[:])
				if err := a.write(w, off, v); err != nil {
					t.Errorf("write at %d: %v", off, err)
				}
				if !bytes.Equal(b, want) {
					t.Errorf("write at %d: memory is\n% x, want\n% x", off, b, want)
				}
			}
		})
	}
}

// All ones and all zeroes come back as they are: no sign, no garbage from
// wider registers.
func TestExtremes(t *testing.T) {
	for _, a := range accesses {
		ones := ^uint64(0) >> (64 - 8*a.width)
		b := aligned(24)
		w := NewWindow(b)
		if err := a.write(w, 8, ^uint64(0)); err != nil {
			t.Fatal(err)
		}
		if got, err := a.read(w, 8); err != nil || got != ones {
			t.Errorf("%s: %#x, %v, want %#x", a.name, got, err, ones)
		}
		pattern(b)
		if err := a.write(w, 8, 0); err != nil {
			t.Fatal(err)
		}
		if got, err := a.read(w, 8); err != nil || got != 0 {
			t.Errorf("%s: %#x, %v, want 0", a.name, got, err)
		}
	}
}

func TestBounds(t *testing.T) {
	b := aligned(32)
	pattern(b)
	before := bytes.Clone(b)
	w := NewWindow(b)
	for _, a := range accesses {
		bad := []uint64{32, 33, 32 - a.width + 1, 1 << 20, 1 << 63, ^uint64(0), ^uint64(0) - a.width + 1}
		for mis := uint64(1); mis < a.width; mis++ {
			bad = append(bad, 8+mis)
		}
		for _, off := range bad {
			if _, err := a.read(w, off); !errors.Is(err, ErrBounds) {
				t.Errorf("%s: read at %#x: %v", a.name, off, err)
			}
			if err := a.write(w, off, 0); !errors.Is(err, ErrBounds) {
				t.Errorf("%s: write at %#x: %v", a.name, off, err)
			}
		}
		if _, err := a.read(Window{}, 0); !errors.Is(err, ErrBounds) {
			t.Errorf("%s: read of an empty window: %v", a.name, err)
		}
	}
	if !bytes.Equal(b, before) {
		t.Error("a refused write wrote")
	}
}

func TestSlice(t *testing.T) {
	b := aligned(64)
	pattern(b)
	w := NewWindow(b)
	if w.Len() != 64 || NewWindow(nil).Len() != 0 {
		t.Errorf("lengths %d and %d", w.Len(), NewWindow(nil).Len())
	}
	for _, c := range []struct {
		off, n uint64
		ok     bool
	}{
		{0, 64, true}, {16, 16, true}, {63, 1, true}, {64, 0, true}, {0, 0, true},
		{0, 65, false}, {64, 1, false}, {65, 0, false}, {8, ^uint64(0), false}, {^uint64(0), 8, false},
	} {
		t.Run(fmt.Sprintf("%d,%d", c.off, c.n), func(t *testing.T) {
			s, err := w.Slice(c.off, c.n)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBounds) {
				t.Fatalf("error %v, want ok %v", err, c.ok)
			}
			if err != nil {
				return
			}
			if s.Len() != c.n {
				t.Errorf("%d bytes", s.Len())
			}
			if c.n > 0 {
				if v, err := s.Read8(0); err != nil || v != b[c.off] {
					t.Errorf("first byte %#x, %v, want %#x", v, err, b[c.off])
				}
			}
			if _, err := s.Read8(c.n); !errors.Is(err, ErrBounds) {
				t.Errorf("beyond the end: %v", err)
			}
		})
	}
	if (Register32{}).Valid() || (Register64{}).Valid() {
		t.Error("a register of nothing")
	}
}

// Values are handed over from one goroutine to another in the order that the
// fences say: the value, then the flag.
func TestFences(t *testing.T) {
	const rounds = 20_000
	w := NewWindow(aligned(256))
	value, _ := w.Register64(0)
	flag, _ := w.Register32(64)
	ack, _ := w.Register32(128)
	var bad atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint32(1); i <= rounds; i++ {
			for spin := 0; flag.Load() != i; spin++ {
				yield(spin)
			}
			LoadFence()
			if value.Load() != uint64(i)<<32|uint64(^i) {
				bad.Add(1)
			}
			Fence()
			ack.Store(i)
		}
	}()
	for i := uint32(1); i <= rounds; i++ {
		value.Store(uint64(i)<<32 | uint64(^i))
		if i%2 == 0 {
			StoreFence()
		} else {
			CombinedFence()
		}
		flag.Store(i)
		for spin := 0; ack.Load() != i; spin++ {
			yield(spin)
		}
		Fence()
	}
	<-done
	if n := bad.Load(); n != 0 {
		t.Errorf("%d of %d values came after their flags", n, rounds)
	}
}

// Of two stores and loads that cross, Fence lets at least one see the other.
func TestFenceStoreLoad(t *testing.T) {
	const rounds = 5_000
	w := NewWindow(aligned(256))
	x, _ := w.Register32(0)
	y, _ := w.Register32(128)
	var arrived, seen [2]atomic.Uint32
	meet := func(me int, n uint32) {
		arrived[me].Store(n)
		for spin := 0; arrived[1-me].Load() < n; spin++ {
			yield(spin)
		}
	}
	blind := 0
	play := func(me int, mine, other Register32) {
		for i := uint32(1); i <= rounds; i++ {
			meet(me, 2*i)
			mine.Store(i)
			Fence()
			seen[me].Store(other.Load())
			meet(me, 2*i+1)
			if me == 0 && seen[0].Load() < i && seen[1].Load() < i {
				blind++
			}
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); play(1, y, x) }()
	play(0, x, y)
	<-done
	if blind != 0 {
		t.Errorf("in %d of %d rounds neither store was seen", blind, rounds)
	}
}

func BenchmarkStore32(b *testing.B) {
	r, err := NewWindow(aligned(64)).Register32(0)
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		r.Store(uint32(i))
	}
}
