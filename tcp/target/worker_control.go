package target

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/poller"
)

// workerCold is the part of a worker that I/O does not touch.
type workerCold struct {
	conns    map[*conn]struct{}
	byFD     map[int]*conn // those in the epoll instance
	ports    map[int]*Port // listeners in the epoll instance, by descriptor
	watched  int           // descriptors in the epoll instance
	views    map[viewKey]*view
	channels map[*Namespace]*channel
	totals   map[*Subsystem]*totals
	starving []*conn       // have requests that wait for memory
	movers   []*conn       // are to move to another worker
	stalled  *poller.Timer // looks for hosts that hold what others wait for
	events   [takeEvents]sys.EpollEvent

	load     int // connections, under the target's lock
	ioQueues int // of them, under the target's lock
	closing  bool
	added    bool // is a source of the poller
	run      func()
	done     chan struct{} // closed at the end

	mu    sync.Mutex
	inbox []func()
}

func newWorker(t *Target, p *poller.Poller, buffers int64) (*worker, error) {
	epfd, err := sys.EpollCreate()
	if err != nil {
		return nil, err
	}
	w := &worker{t: t, p: p, epfd: epfd, staging: make([]byte, t.cfg.Transport.Staging)}
	w.buffers.limit = buffers
	w.cold = workerCold{
		conns:    map[*conn]struct{}{},
		byFD:     map[int]*conn{},
		ports:    map[int]*Port{},
		views:    map[viewKey]*view{},
		channels: map[*Namespace]*channel{},
		totals:   map[*Subsystem]*totals{},
		done:     make(chan struct{}),
	}
	w.cold.run = w.wake
	return w, nil
}

// post has f run on the worker's core, and wakes the poller for it. It never
// fails: if the poller is closed, f runs when the target is.
func (w *worker) post(f func()) {
	w.cold.mu.Lock()
	w.cold.inbox = append(w.cold.inbox, f)
	w.posted.Store(true)
	w.cold.mu.Unlock()
	// A poller with a full mailbox is awake and will look.
	_ = w.p.Post(w.cold.run)
}

// wake runs on the core, also when the poller is being closed and does not
// poll its sources any more.
func (w *worker) wake() {
	if !w.cold.added && !w.ended() {
		w.cold.added = true
		w.p.Add(w)
	}
	w.now = w.p.Now()
	w.runInbox()
	w.tidyUp()
}

func (w *worker) ended() bool {
	select {
	case <-w.cold.done:
		return true
	default:
		return false
	}
}

// runInbox runs what was posted.
func (w *worker) runInbox() int {
	w.cold.mu.Lock()
	list := w.cold.inbox
	w.cold.inbox = nil
	w.posted.Store(false)
	w.cold.mu.Unlock()
	for _, f := range list {
		f()
	}
	return len(list)
}

// ready acts on an event of a descriptor in the epoll instance.
func (w *worker) ready(fd int) {
	if port := w.cold.ports[fd]; port != nil {
		w.accept(port, fd)
		return
	}
	if c := w.cold.byFD[fd]; c != nil {
		w.heat(c)
	}
}

// heat has a connection be received from in every pass.
func (w *worker) heat(c *conn) {
	w.unwatch(c)
	if !c.listed {
		c.listed = true
		c.hotUntil = w.now + hotTime
		w.hot = append(w.hot, c)
	}
}

// cool has a connection wait in the epoll instance.
func (w *worker) cool(c *conn) {
	if err := sys.EpollAdd(w.epfd, c.fd, unix.EPOLLIN); err != nil {
		return // it stays hot
	}
	c.publish()
	w.unlist(c)
	c.watched = true
	w.cold.byFD[c.fd] = c
	w.cold.watched++
}

func (w *worker) unwatch(c *conn) {
	if !c.watched {
		return
	}
	c.watched = false
	delete(w.cold.byFD, c.fd)
	w.cold.watched--
	_ = sys.EpollDelete(w.epfd, c.fd)
}

func (w *worker) unlist(c *conn) {
	if !c.listed {
		return
	}
	c.listed = false
	i := slices.Index(w.hot, c)
	w.hot = slices.Delete(w.hot, i, i+1)
}

// Arm implements poller.Waiter: all connections wait in the epoll instance,
// whose descriptor can be waited for.
func (w *worker) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	w.now = now
	for len(w.hot) > 0 {
		before := len(w.hot)
		if w.cool(w.hot[0]); len(w.hot) == before {
			return -1, 0, 0, false
		}
	}
	w.lookAt = 0
	ok = !w.posted.Load() && !w.untidy && !w.hungry
	for _, c := range w.channels {
		due, can := c.ch.Arm(now)
		deadline = earlier(deadline, due)
		ok = ok && can
	}
	for _, c := range w.unsent {
		deadline = earlier(deadline, max(c.retryAt, now+1))
	}
	return w.epfd, unix.POLLIN, deadline, ok
}

// earlier is the earlier of two times, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// tidyUp does what waits for the end of a pass.
func (w *worker) tidyUp() {
	w.untidy = false
	w.move()
	for c := range w.cold.conns {
		if c.state == connDead && c.used == 0 {
			w.bury(c)
		}
	}
	w.closeRetired()
	if w.cold.closing {
		w.finish()
	}
}

// close ends everything that the worker has.
func (w *worker) close() {
	w.cold.closing = true
	for c := range w.cold.conns {
		c.close(ErrClosed)
	}
	w.untidy = true
}

// finish is the end of a worker that is closing, once nothing is under way.
func (w *worker) finish() {
	if len(w.cold.conns) > 0 || w.ended() {
		return
	}
	for fd := range w.cold.ports {
		w.unlisten(fd)
	}
	for _, ch := range w.cold.channels {
		w.closeChannel(ch)
	}
	clear(w.cold.views)
	if w.cold.stalled != nil {
		w.cold.stalled.Stop()
	}
	_ = sys.Close(w.epfd)
	w.p.Remove(w)
	close(w.cold.done)
}

// discard is for a worker that was never used.
func (w *worker) discard() { _ = sys.Close(w.epfd) }

// await waits for the end of a worker that was told to close. A poller that is
// closed meanwhile does not get there by itself.
func (w *worker) await() {
	const look = 5 * time.Millisecond
	for {
		select {
		case <-w.cold.done:
			return
		case <-time.After(look):
		}
		if errors.Is(w.p.Post(w.cold.run), poller.ErrClosed) {
			w.p.CallAnyway(func() { w.drainClosed(func() { time.Sleep(look) }) })
			return
		}
	}
}

// drainClosed is for a poller that was closed before the target: nothing runs
// there any more, so that the caller may do what is left, and waits for what is
// under way in backends.
func (w *worker) drainClosed(pause func()) {
	for !w.ended() {
		w.runInbox()
		for _, c := range w.channels {
			c.ch.Poll(w.now)
		}
		w.tidyUp()
		if !w.ended() {
			pause()
		}
	}
}

var errTooMany = errors.New("too many connections")

// ErrClosed means that the target was closed, or stopped.
var ErrClosed = errors.New("nvme/tcp target: closed")

func socketError(call string, e sys.Errno) error {
	return fmt.Errorf("nvme/tcp target: %s: %w", call, e)
}
