// Package pattern has data for which it can be told where it belongs and how old
// it is: the tests of package interop write and expect it on the host, and their
// programs in the guest.
package pattern

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const mixer = 0x9e3779b97f4a7c15

// Fill writes the pattern of a block. The first 16 bytes are its address and
// the generation in the clear, for the sake of messages; every word after them
// depends on both. Generation 0 is zeros. The length of b is a multiple of 8,
// from 16.
func Fill(b []byte, lba uint64, gen uint32) {
	if gen == 0 {
		clear(b)
		return
	}
	binary.LittleEndian.PutUint64(b, lba)
	binary.LittleEndian.PutUint64(b[8:], uint64(gen))
	word := first(lba, gen)
	for i := 16; i < len(b); i += 8 {
		word = next(word)
		binary.LittleEndian.PutUint64(b[i:], word)
	}
}

// Holds tells whether b is exactly what Fill writes.
func Holds(b []byte, lba uint64, gen uint32) bool {
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
	word := first(lba, gen)
	for i := 16; i < len(b); i += 8 {
		word = next(word)
		if binary.LittleEndian.Uint64(b[i:]) != word {
			return false
		}
	}
	return true
}

func first(lba uint64, gen uint32) uint64 { return (lba<<20 ^ uint64(gen)) * mixer }

func next(word uint64) uint64 { return word*6364136223846793005 + mixer }

// Describe says what a block holds.
func Describe(b []byte) string {
	lba, gen := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	switch {
	case Holds(b, 0, 0):
		return "zeros"
	case gen == uint64(uint32(gen)) && Holds(b, lba, uint32(gen)):
		return fmt.Sprintf("what belongs to LBA %d, generation %d", lba, gen)
	}
	return fmt.Sprintf("no whole pattern, it begins with %x", b[:min(len(b), 32)])
}

// Model knows what each block of a range must hold. It has one owner at a time.
type Model struct {
	LBA   uint64 // of the first block
	Size  int    // bytes per block
	gen   []uint32
	maybe map[uint64][]uint32 // by index: later writes whose outcome is unknown
	last  uint32
}

// NewModel returns a model of blocks that are zeros.
func NewModel(lba, blocks uint64, size int) *Model {
	return &Model{LBA: lba, Size: size, gen: make([]uint32, blocks), maybe: map[uint64][]uint32{}}
}

// Blocks returns the length of the range.
func (m *Model) Blocks() uint64 { return uint64(len(m.gen)) }

// Begin fills b with what is to be written to the blocks from index at on, and
// returns the generation of that write.
func (m *Model) Begin(b []byte, at uint64) uint32 {
	m.last++
	for ; len(b) > 0; at, b = at+1, b[m.Size:] {
		Fill(b[:m.Size], m.LBA+at, m.last)
	}
	return m.last
}

// Wrote notes that a write of n blocks was acknowledged; generation 0 is of
// zeros.
func (m *Model) Wrote(at, n uint64, gen uint32) {
	for i := at; i < at+n; i++ {
		m.gen[i] = gen
		delete(m.maybe, i)
	}
}

// Lost notes that a write has failed: until the next one that does not, each
// block holds what it did or what was to be written.
func (m *Model) Lost(at, n uint64, gen uint32) {
	for i := at; i < at+n; i++ {
		m.maybe[i] = append(m.maybe[i], gen)
	}
}

// Verify checks what was read from the blocks from index at on.
func (m *Model) Verify(b []byte, at uint64) error {
	for ; len(b) > 0; at, b = at+1, b[m.Size:] {
		blk, lba := b[:m.Size], m.LBA+at
		holds := func(gen uint32) bool { return Holds(blk, lba, gen) }
		if !holds(m.gen[at]) && !slices.ContainsFunc(m.maybe[at], holds) {
			return fmt.Errorf("LBA %d holds %s, want generation %d or one of %d", lba, Describe(blk), m.gen[at], m.maybe[at])
		}
	}
	return nil
}
