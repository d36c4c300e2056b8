package sys

import (
	"bytes"
	"testing"
)

// join returns the bytes that pieces refer to.
func join(iovs []Iovec) []byte {
	var b []byte
	for i := range iovs {
		b = append(b, iovs[i].Bytes()...)
	}
	return b
}

func TestConsume(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
		n      int
		left   int // pieces that must be left
	}{
		{"nothing of nothing", nil, 0, 0},
		{"nothing", []string{"abc", "de"}, 0, 2},
		{"part of the first", []string{"abc", "de"}, 2, 2},
		{"all of the first", []string{"abc", "de"}, 3, 1},
		{"part of the second", []string{"abc", "de"}, 4, 1},
		{"all", []string{"abc", "de"}, 5, 0},
		{"empty pieces on the way", []string{"", "abc", "", "de"}, 3, 1},
		{"empty pieces at the end", []string{"abc", ""}, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			iovs := make([]Iovec, len(c.pieces))
			var all []byte
			for i, p := range c.pieces {
				iovs[i].Set([]byte(p))
				all = append(all, p...)
			}
			left := Consume(iovs, c.n)
			if len(left) != c.left {
				t.Errorf("%d pieces are left, want %d", len(left), c.left)
			}
			if got := join(left); !bytes.Equal(got, all[c.n:]) {
				t.Errorf("%q is left, want %q", got, all[c.n:])
			}
		})
	}
}

// Consuming in steps of any size must visit every byte once, in order.
func FuzzConsume(f *testing.F) {
	f.Add([]byte("some bytes in pieces"), uint8(3), uint8(5))
	f.Add([]byte("x"), uint8(7), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, piece, step uint8) {
		var iovs []Iovec
		for rest := b; len(rest) > 0; {
			n := min(len(rest), 1+int(piece))
			iovs = append(iovs, Iovec{})
			iovs[len(iovs)-1].Set(rest[:n])
			rest = rest[n:]
		}
		for rest := b; ; {
			if got := join(iovs); !bytes.Equal(got, rest) {
				t.Fatalf("%q is left, want %q", got, rest)
			}
			if len(rest) == 0 {
				break
			}
			n := min(len(rest), 1+int(step))
			iovs, rest = Consume(iovs, n), rest[n:]
		}
		if len(iovs) != 0 {
			t.Errorf("%d empty pieces are left", len(iovs))
		}
	})
}
