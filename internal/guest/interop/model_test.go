//go:build guest

package interop

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/qpoll/qpoll/nvme"
)

// A model knows what each block of a range must hold: a pattern made of the
// block's own address and of the generation of the write that put it there, or
// zeros if it was never written. It has one owner at a time.
type model struct {
	lba  uint64   // of the first block
	size int      // bytes per block
	gen  []uint32 // by block: the last write that was acknowledged, 0 for none
	// maybe is a later write whose outcome is unknown: it may be there or not.
	maybe []uint32
	last  uint32 // generation of the newest write
}

func newModel(lba, blocks uint64, size int) *model {
	return &model{lba: lba, size: size, gen: make([]uint32, blocks), maybe: make([]uint32, blocks)}
}

const mixer = 0x9e3779b97f4a7c15

// fill writes the pattern of a generation for the blocks from index at on.
func (m *model) fill(b []byte, at uint64, gen uint32) {
	for ; len(b) > 0; at, b = at+1, b[m.size:] {
		fillBlock(b[:m.size], m.lba+at, gen)
	}
}

// fillBlock puts address and generation in the clear, for the sake of messages,
// and words that depend on both after them.
func fillBlock(b []byte, lba uint64, gen uint32) {
	binary.LittleEndian.PutUint64(b, lba)
	binary.LittleEndian.PutUint64(b[8:], uint64(gen))
	word := (lba<<20 ^ uint64(gen)) * mixer
	for i := 16; i < len(b); i += 8 {
		word = word*6364136223846793005 + mixer
		binary.LittleEndian.PutUint64(b[i:], word)
	}
}

func holds(b []byte, lba uint64, gen uint32) bool {
	if gen == 0 {
		for i := 0; i < len(b); i += 8 {
			if binary.LittleEndian.Uint64(b[i:]) != 0 {
				return false
			}
		}
		return true
	}
	if binary.LittleEndian.Uint64(b) != lba || binary.LittleEndian.Uint64(b[8:]) != uint64(gen) {
		return false
	}
	word := (lba<<20 ^ uint64(gen)) * mixer
	for i := 16; i < len(b); i += 8 {
		word = word*6364136223846793005 + mixer
		if binary.LittleEndian.Uint64(b[i:]) != word {
			return false
		}
	}
	return true
}

// verify checks what was read from the blocks from index at on.
func (m *model) verify(b []byte, at uint64) error {
	for ; len(b) > 0; at, b = at+1, b[m.size:] {
		blk, lba := b[:m.size], m.lba+at
		if holds(blk, lba, m.gen[at]) || m.maybe[at] != 0 && holds(blk, lba, m.maybe[at]) {
			continue
		}
		return fmt.Errorf("LBA %d holds %s, want generation %d (or %d)", lba, describe(blk), m.gen[at], m.maybe[at])
	}
	return nil
}

func describe(b []byte) string {
	lba, gen := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	switch {
	case holds(b, 0, 0):
		return "zeros"
	case gen == uint64(uint32(gen)) && holds(b, lba, uint32(gen)):
		return fmt.Sprintf("what belongs to LBA %d, generation %d", lba, gen)
	}
	return fmt.Sprintf("no whole pattern, it begins with %x", b[:min(len(b), 32)])
}

// begin returns the generation of a new write to n blocks from index at on.
func (m *model) begin() uint32 {
	m.last++
	return m.last
}

// wrote notes that a write of n blocks was acknowledged.
func (m *model) wrote(at, n uint64, gen uint32) {
	for i := at; i < at+n; i++ {
		m.gen[i], m.maybe[i] = gen, 0
	}
}

// lost notes that a write has failed: the blocks hold the old or the new, block
// by block.
func (m *model) lost(at, n uint64, gen uint32) {
	for i := at; i < at+n; i++ {
		m.maybe[i] = gen
	}
}

// readBack verifies all of the range, by the blocking calls.
func (m *model) readBack(t *testing.T, ns *nvme.Namespace) {
	t.Helper()
	const most = 1 << 20
	buf := make([]byte, most/m.size*m.size)
	for at := 0; at < len(m.gen); {
		n := min(len(m.gen)-at, len(buf)/m.size)
		b := buf[:n*m.size]
		if _, err := ns.ReadAtContext(t.Context(), b, int64(m.lba+uint64(at))*int64(m.size)); err != nil {
			t.Fatalf("read back %d blocks at LBA %d: %v", n, m.lba+uint64(at), err)
		}
		if err := m.verify(b, uint64(at)); err != nil {
			t.Fatalf("read back: %v", err)
		}
		at += n
	}
}

// TestModel makes sure that the checks above find what they are there to find.
func TestModel(t *testing.T) {
	m := newModel(1000, 8, 512)
	b := make([]byte, 4*512)
	if err := m.verify(b, 0); err != nil {
		t.Errorf("blocks never written: %v", err)
	}
	gen := m.begin()
	m.fill(b, 2, gen)
	if m.verify(b, 2) == nil {
		t.Error("a write that was not made passes")
	}
	m.wrote(2, 4, gen)
	if err := m.verify(b, 2); err != nil {
		t.Error(err)
	}
	for _, at := range []int{0, 8, 16, 511, 3*512 + 100} {
		b[at] ^= 1
		if m.verify(b, 2) == nil {
			t.Errorf("a flipped bit in byte %d passes", at)
		}
		b[at] ^= 1
	}
	if m.verify(b, 1) == nil {
		t.Error("data that belongs elsewhere passes")
	}
	older := append([]byte(nil), b...)
	next := m.begin()
	m.fill(b, 2, next)
	m.lost(2, 4, next)
	if m.verify(b, 2) != nil || m.verify(older, 2) != nil {
		t.Error("after a failed write both the old and the new must pass")
	}
	m.wrote(2, 4, next)
	if m.verify(older, 2) == nil {
		t.Error("a lost write passes")
	}
}
