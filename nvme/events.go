package nvme

import (
	"context"
	"sync"
	"time"
)

// State is the state of a controller, with the names of the Linux host.
type State uint8

// The states of a controller.
const (
	StateNew        State = iota // being opened
	StateLive                    // usable
	StateResetting               // taking the queues down
	StateConnecting              // trying to come (back) up
	StateDeleting                // being closed
	StateDead                    // closed or given up
)

// String returns the name that Linux shows in sysfs.
func (s State) String() string {
	return [...]string{"new", "live", "resetting", "connecting", "deleting", "dead"}[min(s, StateDead)]
}

// Events are called when something notable happens to a controller, one at a
// time and in order, on a goroutine of their own: they may block, and may call
// any method, admin commands and Close included. Nil members are skipped. What
// happened before Close returned may still be told after it.
type Events struct {
	// State: the controller changed state; err says why, nil for the ordinary.
	State func(c *Controller, from, to State, err error)
	// Reconnect: an attempt to reconnect ended; the first has number 1.
	Reconnect func(c *Controller, attempt int, err error)
	// Queue: an I/O queue pair was lost (err) or is back (nil).
	Queue func(c *Controller, qid uint16, err error)
	// Quiet: a lost or closed association has become quiet; see
	// Controller.Quiet. It may come after Close has returned.
	Quiet func(c *Controller, association uint64)
	// Timeout: a command was overdue. action is "abort" or "reset".
	Timeout func(c *Controller, qid, cid uint16, age time.Duration, action string)
	// Async: an asynchronous event arrived, of any type; for those below the
	// log page has been read already.
	Async func(c *Controller, e AsyncEvent)
	// NamespacesChanged: these namespaces were added, removed, resized or
	// changed; nil means that the controller could not tell which.
	NamespacesChanged func(c *Controller, nsids []uint32)
	// ANAChanged: the ANA log was read again after a change.
	ANAChanged func(c *Controller, log *ANALog)
	// DiscoveryChanged: the discovery log page changed.
	DiscoveryChanged func(c *Controller)
}

// dispatcher calls listeners in order, away from whoever has news.
type dispatcher struct {
	mu      sync.Mutex
	queue   []func()
	running bool
	room    chan struct{} // signals those that wait in postInTurn; made by the first
}

// maxUnheard is how many events wait at most for a listener before those that
// a controller can cause at will have to wait.
const maxUnheard = 64

func (d *dispatcher) post(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(f)
}

// postInTurn is post once few enough events wait, or ctx has ended.
func (d *dispatcher) postInTurn(ctx context.Context, f func()) {
	for {
		d.mu.Lock()
		if len(d.queue) < maxUnheard {
			d.add(f)
			d.mu.Unlock()
			return
		}
		if d.room == nil {
			d.room = make(chan struct{})
		}
		room := d.room
		d.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
	}
}

func (d *dispatcher) add(f func()) {
	d.queue = append(d.queue, f)
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *dispatcher) run() {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.running, d.queue = false, nil
			d.mu.Unlock()
			return
		}
		f := d.queue[0]
		d.queue = d.queue[1:]
		if d.room != nil && len(d.queue) < maxUnheard {
			close(d.room)
			d.room = nil
		}
		d.mu.Unlock()
		f()
	}
}
