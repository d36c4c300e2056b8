package vfiouser

import (
	"bytes"
	"testing"
	"time"

	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// FuzzServer is a hostile server: each of its answers is cut from the input, with
// a header that may be right or not, and with or without a descriptor. The device
// opens or does not; it never hangs, panics or leaks.
func FuzzServer(f *testing.F) {
	f.Add([]byte{}, byte(0))
	f.Add(bytes.Repeat([]byte{0, 0, 1, 0}, 64), byte(1))
	f.Add(vfuser.RegionInfo{ArgSize: 32, Flags: 15, Size: 0x3000, Areas: []vfuser.Area{{Offset: 0x1000, Size: 0x1000}}}.Append(nil), byte(3))
	f.Add(vfuser.RegionAccess{Region: 7, Count: 64, Data: make([]byte, 64)}.Append(nil), byte(7))
	f.Fuzz(func(t *testing.T, script []byte, how byte) {
		s := newServer(t)
		left := script
		from := int(how & 15) // answers before this one are right
		n := 0
		s.override.set(func(c *vfuser.Conn, m *vfuser.Message) bool {
			if n++; n <= from {
				return false
			}
			if len(left) == 0 {
				c.Close()
				return true
			}
			k := min(len(left), 1+int(left[0])%80)
			part := left[:k]
			left = left[k:]
			h := m.Reply()
			if how&64 != 0 {
				h.ID += uint16(part[0] & 1)
				h.Flags = vfuser.Flags(part[0] & 0x3f)
			}
			var fds []int
			if how&16 != 0 && part[0]&2 != 0 {
				fds = []int{int(s.bar.Fd())}
			}
			_ = c.Send(h, part, fds)
			return true
		})
		d, err := s.open(time.Second)
		if err != nil {
			return
		}
		_, _ = d.Read32(8)
		_ = d.Write64(0x28, 1)
		_, _ = d.Map(0, 0x1000, 8)
		_ = d.MapDMA(pcie.Memory{Bytes: make([]byte, 4096), FD: -1}, 1<<32)
		_ = d.UnmapDMA(1<<32, 4096)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
