package pcie

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// deleteTimeout is how long a controller may take to delete a queue. Then the
// controller is disabled.
const deleteTimeout = 5 * time.Second

// errDisabled ends what waits for a controller that is being disabled.
var errDisabled = errors.New("pcie: the controller is being disabled")

// Disconnect implements nvme.Transport. A queue pair of a controller that works
// is deleted. Where that fails, and where the queue pair was lost, the
// controller is disabled; all of its queues are taken down then.
func (t *transport) Disconnect(ctx context.Context, qp *nvme.QueuePair) error {
	var q *queue
	var broken error
	qp.Poller().CallAnyway(func() {
		q, broken = attachedTo(qp), qp.Broken()
		if q != nil && q.up && broken == nil && qp.ID() != 0 {
			qp.Attach(&drain{q}) // completions still come, nothing goes out
		}
	})
	if q == nil {
		qp.Poller().CallAnyway(qp.Quiesced)
		return nil
	}
	var err error
	switch {
	case q.admin:
		t.quiesce(ctx, q.cold.a)
	case broken != nil || q.cold.unsure:
		t.quiesce(ctx, q.cold.a)
		t.lost(q, broken)
	default:
		if err = t.remove(ctx, q); err != nil {
			t.quiesce(ctx, q.cold.a)
			t.lost(q, err)
		}
	}
	qp.Poller().CallAnyway(func() {
		q.stop()
		qp.Attach(idle{})
		qp.Quiesced()
	})
	t.attached(q, false)
	if !t.leaks() {
		q.free()
	}
	return nil
}

// attachedTo returns the queue that a queue pair has.
func attachedTo(qp *nvme.QueuePair) *queue {
	switch x := qp.Transport().(type) {
	case *queue:
		return x
	case *drain:
		return x.q
	}
	return nil
}

// lost tells the admin queue that the controller was taken down underneath it.
func (t *transport) lost(q *queue, cause error) {
	if cause == nil {
		cause = nvme.ErrTimeout
	}
	admin := t.admin.Load()
	admin.Poller().CallAnyway(func() {
		if a := attachedTo(admin); a != nil && a.cold.a == q.cold.a {
			a.lose(fmt.Errorf("controller disabled: queue %d: %w", q.id, cause))
		}
	})
}

// remove has the controller delete both queues. Then it touches none of their
// memory, nor that of their commands (Base Specification 5.2.4).
func (t *transport) remove(ctx context.Context, q *queue) error {
	t.assoc.RLock()
	defer t.assoc.RUnlock()
	a := q.cold.a
	if t.current != a || t.dev.Gone() {
		return nil // disabled meanwhile, or gone: it is quiet
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deleteTimeout, fmt.Errorf("%w: queue not deleted within %v", nvme.ErrTimeout, deleteTimeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(a.ctx, func() { stop(errDisabled) })()
	if q.cold.madeSQ {
		cmd := nvme.DeleteSQCommand(q.id)
		if err := t.ask(ctx, q, &cmd); err != nil {
			return fmt.Errorf("delete submission queue: %w", err)
		}
		q.cold.madeSQ = false
	}
	if q.cold.madeCQ {
		cmd := nvme.DeleteCQCommand(q.id)
		if err := t.ask(ctx, q, &cmd); err != nil {
			return fmt.Errorf("delete completion queue: %w", err)
		}
		q.cold.madeCQ = false
	}
	return nil
}

// quiesce makes sure that the controller of an association is quiet: it touches
// no memory of the host any more.
func (t *transport) quiesce(ctx context.Context, a *association) {
	a.cancel(errDisabled)
	t.assoc.Lock()
	defer t.assoc.Unlock()
	if a.quiet {
		return
	}
	a.quiet = true
	if t.current == a {
		t.current = nil
	}
	if t.dev.Gone() {
		return
	}
	var err error
	if !t.shutDown() {
		err = t.disable(ctx)
	}
	if e := t.dev.SetBusMaster(false); err == nil && e == nil || t.dev.Gone() {
		return
	}
	t.force(err)
}

// resetTimeout bounds a function level reset: 100 ms by the specification, and
// what the host takes for it.
const resetTimeout = 10 * time.Second

// force quiets a controller that will not be disabled. It is called with bus
// mastering off, or with that having failed.
func (t *transport) force(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), resetTimeout)
	defer cancel()
	t.cfg.Logger.Warn("controller is reset", "device", t.dev.Name(), "cause", cause)
	err := t.dev.Reset(ctx)
	if err == nil || t.dev.Gone() {
		return
	}
	// Nothing has worked. Without its mappings the device reaches no memory, but
	// cannot be used any more either.
	t.dead = fmt.Errorf("%w: it could be neither disabled nor reset: %w", ErrGone, err)
	t.cfg.Logger.Error("device is cut off from memory", "device", t.dev.Name(), "cause", err)
	if err := t.mem.cutOff(); err != nil {
		t.mem.keep()
		t.cfg.Logger.Error("memory is left to the device", "device", t.dev.Name(), "error", err)
	}
}

// leaks tells whether memory must not be used again, since the device may still
// write to it.
func (t *transport) leaks() bool { return t.mem.kept.Load() }

// leastDisable is what a controller has to get disabled although the caller is
// out of time.
const leastDisable = time.Second

// shutDown tells whether the controller was shut down. Then it is quiet as it
// is, and to clear CC.EN would start it again (Base Specification 3.6.1).
func (t *transport) shutDown() bool {
	cc, err := t.dev.Read32(nvme.RegCC)
	if err != nil || nvme.CC(cc).SHN() == nvme.CCSHNNone {
		return false
	}
	st, err := t.csts()
	return err == nil && st.SHST() == nvme.CSTSSHSTComplete
}

// disable clears CC.EN and waits for CSTS.RDY to follow (Base Specification
// 3.7.2).
func (t *transport) disable(ctx context.Context) error {
	limit := t.readyLimit()
	if d, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(d), leastDisable))
	} else if ctx.Err() != nil {
		limit = min(limit, leastDisable)
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit+t.delay(),
		fmt.Errorf("%w: CSTS.RDY not clear within %v of CC.EN", nvme.ErrTimeout, limit))
	defer cancel()
	cc, err := t.dev.Read32(nvme.RegCC)
	if err != nil {
		return err
	}
	if _, err = t.csts(); err != nil {
		return err
	}
	if nvme.CC(cc).EN() {
		if err := t.clearEN(ctx, uint32(nvme.CC(cc).WithEN(false).WithSHN(nvme.CCSHNNone))); err != nil {
			return err
		}
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		if st, err := t.csts(); err != nil || !st.RDY() {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (t *transport) delay() time.Duration {
	if t.quirks&QuirkDelayReady != 0 {
		return readyDelay
	}
	return 0
}

// csts reads CSTS.
func (t *transport) csts() (nvme.CSTS, error) {
	v, err := t.dev.Read32(nvme.RegCSTS)
	if err != nil {
		return 0, err
	}
	if nvme.CSTS(v).Gone() {
		return 0, fmt.Errorf("%w: CSTS reads all ones", nvme.ErrFatal)
	}
	return nvme.CSTS(v), nil
}

// drain is a queue that is being deleted: completions are taken, commands are
// not, and end with the connection.
type drain struct{ q *queue }

// Submit implements nvme.QueueTransport.
func (d *drain) Submit(*nvme.Request) {}

// Poll implements nvme.QueueTransport.
func (d *drain) Poll(int64) int {
	if !d.q.up {
		return 0
	}
	return d.q.reap()
}

// Arm implements nvme.QueueTransport.
func (d *drain) Arm(now int64) (int, int16, int64, bool) { return -1, 0, now + busyPause, true }

// idle is a queue pair that is not connected.
type idle struct{}

// Submit implements nvme.QueueTransport.
func (idle) Submit(*nvme.Request) {}

// Poll implements nvme.QueueTransport.
func (idle) Poll(int64) int { return 0 }

// Arm implements nvme.QueueTransport.
func (idle) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, true }
