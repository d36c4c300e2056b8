package nvme

import (
	"context"
	"testing"
)

// disabledDisk takes note of I/O queues that are up when the host disables the
// controller. Kernel targets answer what comes through them with Command
// Sequence Error, and Do Not Retry.
type disabledDisk struct {
	*fakeDisk
	disabled int
	up       []uint16
}

func (d *disabledDisk) SetProperty(ctx context.Context, off uint32, size int, v uint64) error {
	if off == RegCC && !CC(v).EN() {
		d.disabled++
		for id, q := range d.queues {
			q.qp.Poller().CallAnyway(func() {
				if id != 0 && q.up {
					d.up = append(d.up, id)
				}
			})
		}
	}
	return d.fakeDisk.SetProperty(ctx, off, size, v)
}

func TestResetTakesQueuesDownFirst(t *testing.T) {
	d := &disabledDisk{fakeDisk: newFakeDisk(512, 64)}
	c, err := NewController(context.Background(), d, &Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.OpenQueue(context.Background(), nil, QueueConfig{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d.disabled != 1 || len(d.up) > 0 {
		t.Errorf("disabled %d times, with queues %d up", d.disabled, d.up)
	}
}
