package pattern

import (
	"slices"
	"testing"
)

// TestModel makes sure that the checks find what they are there to find.
func TestModel(t *testing.T) {
	const size = 512
	m := NewModel(1000, 8, size)
	b := make([]byte, 4*size)
	if err := m.Verify(b, 0); err != nil {
		t.Errorf("blocks never written: %v", err)
	}
	gen := m.Begin(b, 2)
	if m.Verify(b, 2) == nil {
		t.Error("a write that was not made passes")
	}
	m.Wrote(2, 4, gen)
	if err := m.Verify(b, 2); err != nil {
		t.Error(err)
	}
	for _, at := range []int{0, 8, 16, 511, 3*size + 100} {
		b[at] ^= 1
		if m.Verify(b, 2) == nil {
			t.Errorf("a flipped bit in byte %d passes", at)
		}
		b[at] ^= 1
	}
	if m.Verify(b, 1) == nil {
		t.Error("data that belongs elsewhere passes")
	}
	older := slices.Clone(b)
	next := m.Begin(b, 2)
	m.Lost(2, 4, next)
	if m.Verify(b, 2) != nil || m.Verify(older, 2) != nil {
		t.Error("after a failed write both the old and the new must pass")
	}
	third := slices.Clone(b)
	m.Lost(2, 4, m.Begin(third, 2))
	if m.Verify(third, 2) != nil || m.Verify(b, 2) != nil || m.Verify(older, 2) != nil {
		t.Error("after two failed writes any of the three must pass")
	}
	m.Wrote(2, 4, next)
	if m.Verify(older, 2) == nil || m.Verify(third, 2) == nil {
		t.Error("a lost write passes")
	}
	m.Wrote(2, 4, 0)
	if m.Verify(b, 2) == nil || m.Verify(make([]byte, 4*size), 2) != nil {
		t.Error("zeroed blocks are not those that pass")
	}
}

func TestDescribe(t *testing.T) {
	b := make([]byte, 64)
	if got, want := Describe(b), "zeros"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	Fill(b, 7, 3)
	if got, want := Describe(b), "what belongs to LBA 7, generation 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b[63]++
	if got, want := Describe(b), "no whole pattern, it begins with 0700000000000000030000000000000"; got[:len(want)] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
