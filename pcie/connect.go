package pcie

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
)

// association is the time from one start of the controller to its being
// disabled.
type association struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	quiet  bool // under transport.assoc

	mu     sync.Mutex
	ready  bool // setUp was done
	shadow *shadowPages
}

// Connect implements nvme.Transport.
func (t *transport) Connect(ctx context.Context, qp *nvme.QueuePair) error {
	if t.dev.Gone() {
		return ErrGone
	}
	if qp.ID() == 0 {
		return t.connectAdmin(ctx, qp)
	}
	return t.connectIO(ctx, qp)
}

// connectAdmin gets the controller, which is disabled afterwards, to know the
// admin queue (Base Specification 3.5.1).
func (t *transport) connectAdmin(ctx context.Context, qp *nvme.QueuePair) error {
	t.assoc.Lock()
	defer t.assoc.Unlock()
	if t.dead != nil {
		return t.dead
	}
	v, err := t.dev.Read64(nvme.RegCAP)
	if err != nil {
		return fmt.Errorf("read CAP: %w", err)
	}
	if v == ^uint64(0) {
		return fmt.Errorf("%w: CAP reads all ones", nvme.ErrFatal)
	}
	t.caps.Store(uint64(t.quirks.adjust(nvme.CAP(v))))
	// Whoever had the controller before may have left it enabled.
	if err := t.disable(ctx); err != nil {
		if ctx.Err() != nil || errors.Is(err, ErrGone) {
			return err
		}
		if e := t.dev.Reset(ctx); e != nil {
			return fmt.Errorf("%w; reset: %w", err, e)
		}
		if err := t.disable(ctx); err != nil {
			return fmt.Errorf("after a reset: %w", err)
		}
	}
	t.openCMB()
	a := &association{}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	q, err := newQueue(t, a, qp)
	if err != nil {
		return err
	}
	if err := t.startAdmin(ctx, q); err != nil {
		t.attached(q, false)
		q.free()
		return err
	}
	t.current = a
	t.admin.Store(qp)
	return nil
}

func (t *transport) startAdmin(ctx context.Context, q *queue) error {
	t.takeVector(q)
	for _, w := range []struct {
		off uint32
		v   uint64
	}{{nvme.RegASQ, q.cold.sqAddr}, {nvme.RegACQ, q.cold.cqAddr}} {
		if err := t.dev.Write64(w.off, w.v); err != nil {
			return err
		}
	}
	if err := t.dev.Write32(nvme.RegAQA, uint32(nvme.MakeAQA(len(q.sq), len(q.cq)))); err != nil {
		return err
	}
	if err := t.dev.SetBusMaster(true); err != nil {
		return fmt.Errorf("bus mastering: %w", err)
	}
	t.attached(q, true)
	return q.qp.Poller().Call(ctx, q.start)
}

// connectIO makes a queue pair on the controller.
func (t *transport) connectIO(ctx context.Context, qp *nvme.QueuePair) error {
	t.assoc.RLock()
	defer t.assoc.RUnlock()
	a := t.current
	if a == nil {
		return fmt.Errorf("%w: the controller is not enabled", nvme.ErrNotLive)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	if err := t.setUp(ctx, a); err != nil {
		return err
	}
	q, err := newQueue(t, a, qp)
	if err != nil {
		return err
	}
	t.takeVector(q)
	q.shadow = a.shadow.bells(q.id)
	// Attached before it is made, so that Disconnect knows what there may be.
	t.attached(q, true)
	if err := qp.Poller().Call(ctx, func() { qp.Attach(q) }); err != nil {
		t.attached(q, false)
		q.free()
		return err
	}
	if err := t.create(ctx, q); err != nil {
		return err
	}
	if t.quirks&QuirkSettle != 0 {
		if err := sleep(ctx, settleDelay); err != nil {
			return err
		}
	}
	return qp.Poller().Call(ctx, q.start)
}

// create has the controller make both queues.
func (t *transport) create(ctx context.Context, q *queue) error {
	cq := nvme.CreateCQCommand{
		QID: q.id, Size: uint16(len(q.cq) - 1), Address: q.cold.cqAddr, Contiguous: true,
		Interrupts: q.cold.vector >= 0, Vector: uint16(max(q.cold.vector, 0)),
	}.Command()
	sq := nvme.CreateSQCommand{
		QID: q.id, Size: uint16(len(q.sq) - 1), Address: q.cold.sqAddr, Contiguous: true,
		Priority: q.qp.Class().Priority(), CQID: q.id,
	}.Command()
	if err := t.ask(ctx, q, &cq); err != nil {
		return fmt.Errorf("create completion queue: %w", err)
	}
	q.cold.madeCQ = true
	if err := t.ask(ctx, q, &sq); err != nil {
		return fmt.Errorf("create submission queue: %w", err)
	}
	q.cold.madeSQ = true
	return nil
}

// ask sends an admin command about q and waits for its completion. Without one,
// what the controller has done is not known.
func (t *transport) ask(ctx context.Context, q *queue, cmd *nvme.Command) error {
	_, err := t.admin.Load().DoInternal(ctx, cmd, nil)
	var st nvme.Status
	if err != nil && (!errors.As(err, &st) || st.IsPath()) {
		q.cold.unsure = true
	}
	return err
}

// setUp does, before the first I/O queue of an association, what is for all of
// them.
func (t *transport) setUp(ctx context.Context, a *association) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready {
		return nil
	}
	if t.cfg.Arbitration != nil {
		cmd := nvme.Command{Opcode: nvme.AdminSetFeatures, CDW10: uint32(nvme.FeatArbitration), CDW11: t.cfg.Arbitration.dword()}
		if err := t.optional(ctx, &cmd, "Set Features (Arbitration)"); err != nil {
			return err
		}
	}
	if err := t.openShadow(ctx, a); err != nil {
		return err
	}
	a.ready = true
	return nil
}

// optional sends an admin command that may be rejected.
func (t *transport) optional(ctx context.Context, cmd *nvme.Command, name string) error {
	_, err := t.admin.Load().DoInternal(ctx, cmd, nil)
	var st nvme.Status
	if errors.As(err, &st) && !st.IsPath() {
		t.cfg.Logger.Warn(name+" rejected", "device", t.dev.Name(), "status", st.Error())
		return nil
	}
	return err
}

// takeVector gives q an interrupt vector of its own, if interrupts are wanted
// and one is left.
func (t *transport) takeVector(q *queue) {
	if !t.cfg.Interrupts {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for v := range t.dev.Interrupts() {
		if t.vectors[v] || v == 0 && !q.admin { // the admin queue's is always 0
			continue
		}
		fd, err := sys.EventFD()
		if err != nil {
			return
		}
		if err := t.dev.SetInterrupt(v, fd); err != nil {
			sys.Close(fd)
			t.cfg.Logger.Warn("no interrupts", "device", t.dev.Name(), "vector", v, "error", err)
			return
		}
		t.vectors[v] = true
		q.cold.vector, q.cold.fd = v, fd
		return
	}
}

func (t *transport) giveVector(v, fd int) {
	if v < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.dev.SetInterrupt(v, -1)
	sys.Close(fd)
	delete(t.vectors, v)
}

// readyLimit is how long the controller may take to get disabled.
func (t *transport) readyLimit() time.Duration { return t.capp().TO() + 500*time.Millisecond }
