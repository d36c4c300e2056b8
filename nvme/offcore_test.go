package nvme

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/invariants"
)

// Submitting from elsewhere than the core panics in builds that check it. In
// others it would be a data race, so there the calls come from the core.
func TestSubmitOffCore(t *testing.T) {
	r := newRig(t, newFakeDisk(512, 64), nil)
	q := r.queue(8)
	var buf [512]byte
	for name, submit := range map[string]func(c *collect) error{
		"Read":       func(c *collect) error { return q.Read(buf[:], 0, 1, collectDone, c) },
		"Write":      func(c *collect) error { return q.Write(buf[:], 0, 1, collectDone, c) },
		"ReadV":      func(c *collect) error { return q.ReadV([][]byte{buf[:]}, 0, 1, collectDone, c) },
		"Flush":      func(c *collect) error { return q.Flush(collectDone, c) },
		"Deallocate": func(c *collect) error { return q.Deallocate([]DSMRange{{LBA: 0, Length: 1}}, collectDone, c) },
	} {
		c := newCollect()
		if !invariants.Enabled {
			r.on(func() {
				if err := submit(c); err != nil {
					t.Error(err)
				}
			})
			if st := c.wait(t); !st.OK() {
				t.Errorf("%s: %v", name, st)
			}
			continue
		}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "off the core") {
					t.Errorf("%s: %s", name, got)
				}
			}()
			_ = submit(c)
		}()
		c.none(t)
	}
}
