package nvme

import (
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
// any method, admin commands included. Nil members are skipped.
type Events struct {
	// State: the controller changed state; err says why, nil for the ordinary.
	State func(c *Controller, from, to State, err error)
	// Reconnect: an attempt to reconnect ended; the first has number 1.
	Reconnect func(c *Controller, attempt int, err error)
	// Queue: an I/O queue pair was lost (err) or is back (nil).
	Queue func(c *Controller, qid uint16, err error)
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
	wg      sync.WaitGroup
}

func (d *dispatcher) post(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, f)
	if d.running {
		return
	}
	d.running = true
	d.wg.Add(1)
	go d.run()
}

func (d *dispatcher) run() {
	defer d.wg.Done()
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.running = false
			d.mu.Unlock()
			return
		}
		f := d.queue[0]
		d.queue = d.queue[1:]
		d.mu.Unlock()
		f()
	}
}
