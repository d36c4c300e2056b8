package pcie

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
)

// shadowPages are the two pages of Doorbell Buffer Config (Base Specification
// 5.2.5). Entries are as far apart as doorbells are, so that with a long stride
// only the first queues have some; the others use doorbells alone.
type shadowPages struct {
	stride        uint32
	bells_, event []uint32
}

// bells returns the entries of a queue, zeroed: a queue identifier that is used
// again must not find what the queue before has left.
func (p *shadowPages) bells(qid uint16) shadowBells {
	if p == nil {
		return shadowBells{}
	}
	at := 2 * int(qid) * int(p.stride) / 4
	next := at + int(p.stride)/4
	if next >= len(p.event) {
		return shadowBells{}
	}
	b := shadowBells{&p.bells_[at], &p.event[at], &p.bells_[next], &p.event[next]}
	for _, w := range []*uint32{b.sq, b.sqEvent, b.cq, b.cqEvent} {
		atomic.StoreUint32(w, 0)
	}
	return b
}

// openShadow tells the controller of shadow doorbells, if it has a use for them.
func (t *transport) openShadow(ctx context.Context, a *association) error {
	id := t.id.Load()
	if t.cfg.NoShadowDoorbells || id == nil || id.OACS&nvme.OACSDoorbellBufferConfig == 0 {
		return nil
	}
	qp := t.admin.Load()
	var q *queue
	var p *shadowPages
	var bells, events uint64
	var failed error
	err := qp.Poller().Call(ctx, func() {
		// The memory is the admin queue's, and goes with it. Its own entries must
		// be right before the controller looks at them; it is rung in any case.
		var ok bool
		if q, ok = qp.Transport().(*queue); !ok || !q.up || q.cold.a != a {
			failed = nvme.ErrNotLive
			return
		}
		p, bells, events, failed = q.shadowMemory(t.stride())
		if failed == nil {
			q.feed()
			q.shadow = p.bells(0)
			atomic.StoreUint32(q.shadow.sq, q.tail)
			atomic.StoreUint32(q.shadow.cq, q.head)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	cmd := nvme.DoorbellBufferCommand(bells, events)
	_, err = qp.DoInternal(ctx, &cmd, nil)
	var st nvme.Status
	switch {
	case err == nil:
		a.shadow = p
		return nil
	case errors.As(err, &st) && !st.IsPath():
		t.cfg.Logger.Warn("Doorbell Buffer Config rejected", "device", t.dev.Name(), "status", st.Error())
		return qp.Poller().Call(ctx, func() { q.shadow = shadowBells{} })
	}
	return err
}

func (q *queue) shadowMemory(stride uint32) (p *shadowPages, bells, events uint64, err error) {
	b, bells, err := q.alloc(pageSize, true)
	if err != nil {
		return nil, 0, 0, err
	}
	e, events, err := q.alloc(pageSize, true)
	if err != nil {
		return nil, 0, 0, err
	}
	return &shadowPages{stride, halfWords(b), halfWords(e)}, bells, events, nil
}
