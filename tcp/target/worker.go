//qpoll:hot

package target

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/poller"
)

const (
	// hotTime is how long a connection is received from in every pass after
	// it brought something, in nanoseconds. Later it waits in the epoll
	// instance.
	hotTime = 200_000

	// coldInterval is how often the epoll instance is asked while there are
	// hot connections, in nanoseconds.
	coldInterval = 10_000

	// takeEvents is how many events are taken from it at a time.
	takeEvents = 64
)

// worker is the part of a target that runs on one poller. It is a source of
// that poller; all of it is touched on its core only, but for the inbox.
type worker struct {
	t *Target
	p *poller.Poller

	now       int64 // of the pass
	lookAt    int64 // when to ask the epoll instance
	publishAt int64 // when to publish what was counted
	hot       []*conn
	unsent    []*conn    // have something to send
	channels  []*channel // that have to be polled
	staging   []byte     // what is received lands here
	readv     [2]sys.Iovec
	hungry    bool // memory was released that requests wait for
	untidy    bool // something is to be done at the end of the pass
	buffers   pool

	epfd int

	posted atomic.Bool // the inbox is not empty
	cold   workerCold
}

// Poll implements poller.Source.
func (w *worker) Poll(now int64) int {
	w.now = now
	work := 0
	if w.posted.Load() {
		work += w.runInbox()
	}
	for i := 0; i < len(w.channels); i++ {
		work += w.channels[i].ch.Poll(now)
	}
	if now >= w.lookAt {
		work += w.look()
	}
	for i := 0; i < len(w.hot); {
		c := w.hot[i]
		if n := c.receive(); n > 0 {
			work += n
			c.hotUntil = now + hotTime
		} else if now >= c.hotUntil && c.state != connDead {
			w.cool(c)
		}
		if i < len(w.hot) && w.hot[i] == c {
			i++
		}
	}
	if w.hungry {
		w.feed()
	}
	if len(w.unsent) > 0 {
		work += w.send()
	}
	if w.untidy {
		w.tidyUp()
	}
	if now >= w.publishAt {
		w.publish()
	}
	return work
}

// look takes connections that have something from the epoll instance, and lets
// listeners accept.
func (w *worker) look() int {
	w.lookAt = w.now
	if len(w.hot) > 0 {
		w.lookAt += coldInterval
	}
	if w.cold.watched == 0 {
		return 0
	}
	n, err := sys.EpollTake(w.epfd, w.cold.events[:])
	if err != 0 {
		return 0
	}
	for i := range w.cold.events[:n] {
		w.ready(int(w.cold.events[i].Fd))
	}
	return n
}

// send sends what has accumulated in this pass, one call for each connection.
func (w *worker) send() (work int) {
	n := 0
	for i := 0; i < len(w.unsent); i++ {
		c := w.unsent[i]
		if c.tx.pending() {
			work += c.flush()
		}
		if c.tx.pending() {
			w.unsent[n] = c
			n++
		} else {
			c.unsent = false
		}
	}
	for i := n; i < len(w.unsent); i++ {
		w.unsent[i] = nil
	}
	w.unsent = w.unsent[:n]
	return work
}

// queueSend sees to it that c is flushed at the end of the pass.
func (w *worker) queueSend(c *conn) {
	if !c.unsent {
		c.unsent = true
		w.unsent = append(w.unsent, c)
	}
}
