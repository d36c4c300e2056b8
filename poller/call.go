package poller

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/internal/tsc"
)

// Call runs fn on the core and waits for it. A nil error means that fn has
// run, to its end; any error means that it has not run and will not:
//
//   - If ctx ends before fn has begun, fn never runs and the error is
//     [context.Cause] of ctx. Once it has begun, Call waits for its end,
//     whatever ctx does: what runs on a core is short.
//   - While the mailbox is full, Call tries again until ctx ends.
//   - After Close the error is [ErrClosed].
//
// On the core itself fn runs at once. Anywhere else Call blocks: a poller that
// calls another one stops polling meanwhile, and two that call each other wait
// for ever; between cores, use Post both ways. A poller that is stepped runs
// fn in its next Poll, so its owner must not wait for that between two Polls.
//
// The one exception to "any error means that fn will not run" is a callback
// that ends the poller by [runtime.Goexit]: if that is fn, Call returns
// ErrClosed.
func (p *Poller) Call(ctx context.Context, fn func()) error {
	if fn == nil {
		return ErrNilFunc
	}
	if p.OnCore() {
		fn()
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c := newCall(fn)
	if err := p.postOrWait(ctx, c.run); err != nil {
		c.release()
		return err
	}
	return p.await(ctx, c)
}

// call is one Call on its way. Its state is a phase, and whether the caller
// has gone to sleep on woken; the one who moves it to its last phase sees
// which.
type call struct {
	state atomic.Uint32
	fn    func()
	run   func()        // execute, bound once
	woken chan struct{} // holds one
}

const (
	callWaiting   = iota // in the mailbox
	callRunning          // fn has begun
	callDone             // fn has returned
	callAbandoned        // fn must not begin any more
	callParked    = 8    // bit: the caller waits on woken
)

var calls sync.Pool // of *call

func newCall(fn func()) *call {
	c, _ := calls.Get().(*call)
	if c == nil {
		c = &call{woken: make(chan struct{}, 1)}
		c.run = c.execute
	}
	c.fn = fn
	c.state.Store(callWaiting)
	return c
}

func (c *call) release() {
	c.fn = nil
	calls.Put(c)
}

// execute is what the poller runs.
func (c *call) execute() {
	for {
		s := c.state.Load()
		if s&^callParked == callAbandoned {
			c.release()
			return
		}
		if c.state.CompareAndSwap(s, s&callParked|callRunning) {
			break
		}
	}
	c.fn()
	if c.state.Swap(callDone)&callParked != 0 {
		c.woken <- struct{}{}
	}
}

// abandon keeps fn from running, or returns false if it has begun.
func (c *call) abandon() bool {
	return c.state.CompareAndSwap(callWaiting|callParked, callAbandoned)
}

// await waits for the end of a call that is in the mailbox.
func (p *Poller) await(ctx context.Context, c *call) error {
	if c.spin() || c.state.Or(callParked) == callDone {
		c.release()
		return nil
	}
	var err error
	select {
	case <-c.woken:
		c.release()
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-p.done:
		err = ErrClosed
	}
	if c.abandon() {
		return err
	}
	select {
	case <-c.woken:
		c.release()
		return nil
	case <-p.done:
	}
	// The poller has ended. It ran all that it had accepted, unless fn ended
	// it.
	select {
	case <-c.woken:
		c.release()
		return nil
	default:
		return ErrClosed
	}
}

// spinFor is how long a caller watches before it parks. Waking a parked
// goroutine from a core that never lets go of its processor takes a thief on
// another one, which is slow.
const spinFor = 20 * time.Microsecond

// spin watches for the end of a call for a short while.
func (c *call) spin() bool {
	if runtime.GOMAXPROCS(0) == 1 {
		return false
	}
	for end := tsc.Now() + int64(spinFor); ; {
		for range 16 {
			if c.state.Load() == callDone {
				return true
			}
			tsc.Pause()
		}
		if tsc.Now() >= end {
			return false
		}
	}
}

const (
	leastWait = 10 * time.Microsecond
	mostWait  = time.Millisecond
)

// postOrWait posts fn, waiting for room in the mailbox.
func (p *Poller) postOrWait(ctx context.Context, fn func()) error {
	err := p.Post(fn)
	if !errors.Is(err, ErrMailboxFull) {
		return err
	}
	wait := leastWait
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		if err = p.Post(fn); !errors.Is(err, ErrMailboxFull) {
			return err
		}
		wait = min(2*wait, mostWait)
		timer.Reset(wait)
	}
}
