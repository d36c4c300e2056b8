package nvme

import (
	"context"
	"errors"
	"testing"
	"time"
)

// closingDisk calls a function when it is closed.
type closingDisk struct {
	*fakeDisk
	onClose func()
}

func (d *closingDisk) Close() error {
	d.onClose()
	return d.fakeDisk.Close()
}

// Controllers without a poller share one, which goes with the last of them. An
// open on its core is refused, and does not get stuck when that core is about
// to end.
func TestSharedPoller(t *testing.T) {
	ctx := context.Background()
	for range 5 {
		opened := make(chan error, 1)
		d := &closingDisk{fakeDisk: newFakeDisk(512, 8)}
		c, err := NewController(ctx, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := c.Poller()
		p.CallAnyway(func() {
			if _, err := NewController(ctx, newFakeDisk(512, 8), nil); !errors.Is(err, ErrOnCore) {
				t.Error(err)
			}
		})
		d.onClose = func() {
			err := p.Post(func() {
				time.Sleep(10 * time.Millisecond) // the last controller lets go of the poller, and waits for it
				other, err := NewController(ctx, newFakeDisk(512, 8), nil)
				if err == nil { // on a new poller
					err = other.Close(ctx)
				}
				opened <- err
			})
			if err != nil {
				t.Error(err)
			}
		}
		closed := outcome(func() error { return c.Close(ctx) })
		if err := await(t, opened); err != nil && !errors.Is(err, ErrOnCore) {
			t.Fatal(err)
		}
		if err := await(t, closed); err != nil {
			t.Fatal(err)
		}
	}
	sharedPoller.mu.Lock()
	defer sharedPoller.mu.Unlock()
	if sharedPoller.p != nil || sharedPoller.refs != 0 {
		t.Errorf("%d references left", sharedPoller.refs)
	}
}
