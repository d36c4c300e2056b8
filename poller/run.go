package poller

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/tsc"
)

// Start gives the poller a thread of its own, pinned to its core, and lets it
// run. It fails with [ErrCoreNotAllowed] if the process may not use the core,
// with [ErrStarted], or with [ErrClosed]. Profiles show the thread's samples
// with the labels "poller" (its name) and "core".
func (p *Poller) Start() error {
	if p.OnCore() {
		return fmt.Errorf("%w: Start of %s", ErrOnCore, p.name)
	}
	if err := p.start(); err != nil {
		return err
	}
	if p.cfg.Idle == Busy {
		crowd.warn(p)
	}
	return nil
}

// Started reports whether the poller runs by itself: it was started, and not
// closed. One that is stepped is not. Any goroutine.
func (p *Poller) Started() bool { return p.mode.Load() == running }

func (p *Poller) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.mode.Load() {
	case running:
		return fmt.Errorf("%w: %s", ErrStarted, p.name)
	case closing:
		return fmt.Errorf("%w: %s", ErrClosed, p.name)
	}
	if !p.cfg.Unpinned && !slices.Contains(allowed.cores, p.cfg.Core) {
		return fmt.Errorf("%w: core %d of poller %q, allowed are %v",
			ErrCoreNotAllowed, p.cfg.Core, p.name, allowed.cores)
	}
	tsc.Calibrate()
	p.mode.Store(running)
	if err := p.launch(); err != nil {
		p.mode.CompareAndSwap(running, stepped)
		return err
	}
	if p.cfg.Idle == Busy {
		p.counted = true
		crowd.enter()
	}
	return nil
}

// launch returns when the poller's thread is in place.
func (p *Poller) launch() error {
	ready := make(chan error, 1)
	go p.main(ready)
	select {
	case err := <-ready:
		return err
	case <-p.done: // Events.Start has ended the goroutine
		return fmt.Errorf("%w: %s", ErrClosed, p.name)
	}
}

// main is the goroutine of a running poller. It ends locked to its thread, so
// that the runtime ends the thread, too, and no other goroutine inherits the
// affinity.
func (p *Poller) main(ready chan<- error) {
	runtime.LockOSThread()
	if err := p.settle(); err != nil {
		ready <- err
		return
	}
	p.owner.Store(goroutine())
	defer p.end()
	p.begin(p.clock())
	if p.events.Start != nil {
		p.events.Start(p)
	}
	ready <- nil
	if p.cfg.Idle == Adaptive {
		p.runAdaptive()
	} else {
		p.runBusy()
	}
	p.finish()
	if p.events.Stop != nil {
		p.events.Stop(p)
	}
}

// settle makes the calling thread the poller's.
func (p *Poller) settle() error {
	core := "any"
	if !p.cfg.Unpinned {
		core = strconv.Itoa(p.cfg.Core)
		if err := sys.SetAffinity(p.cfg.Core); err != nil {
			return fmt.Errorf("%w: core %s of poller %q: %w", ErrCoreNotAllowed, core, p.name, err)
		}
	}
	if p.cfg.Idle == Adaptive {
		// Where that is refused, sleeps end up to 50 us late.
		_ = sys.SetTimerSlack(1)
	}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(),
		pprof.Labels("poller", p.name, "core", core)))
	return nil
}

func (p *Poller) runBusy() {
	for p.mode.Load() == running {
		p.pass(p.clock())
	}
}

func (p *Poller) runAdaptive() {
	spin := int64(p.cfg.Spin)
	idleSince := p.now
	for p.mode.Load() == running {
		if p.pass(p.clock()) != 0 {
			idleSince = p.now
		} else if p.now-idleSince >= spin {
			p.sleep()
			idleSince = p.now
		}
	}
}

func (p *Poller) clock() int64 {
	if p.custom != nil {
		return p.custom()
	}
	return tsc.Now()
}

// finish runs what is left in the mailbox, which takes nothing new by now.
func (p *Poller) finish() {
	for !p.mailbox.empty() {
		if p.drain() == 0 {
			runtime.Gosched() // a poster is between reserving and filling a slot
		}
	}
	p.publish(p.now)
}

// end releases what the poller holds. It also runs if a callback has ended the
// goroutine, by a panic that is on its way to end the process, or by
// runtime.Goexit; then nothing more is run.
func (p *Poller) end() {
	p.mailbox.close()
	p.mode.Store(closing)
	p.awaitWakers()
	if p.wakeFD >= 0 {
		sys.Close(p.wakeFD)
	}
	p.owner.Store(0)
	close(p.done)
}

// Close stops the poller, after the current pass if it runs, runs what was
// posted and accepted, and waits until all of that is done. Timers do not fire
// any more, and sources are not polled. On a poller that is not running it
// runs the posted functions itself, so it is for the owner to call. Closing
// again waits for the same. It fails with [ErrOnCore] if called on the core,
// for which it would have to wait.
func (p *Poller) Close() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if p.OnCore() {
		return fmt.Errorf("%w: Close of %s", ErrOnCore, p.name)
	}
	p.mu.Lock()
	was := p.mode.Swap(closing)
	p.mailbox.close()
	p.wake()
	if p.counted {
		p.counted = false
		crowd.leave()
	}
	p.mu.Unlock()
	if was == stepped {
		p.owner.Store(goroutine())
		p.finish()
		p.end()
	}
	<-p.done
	return nil
}

func typeName(s Source) string { return reflect.TypeOf(s).String() }
