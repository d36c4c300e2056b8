package backend

import (
	"fmt"

	"github.com/qpoll/qpoll/poller"
)

// wrapper is what all wrappers of a Backend have in common.
type wrapper struct {
	inner Backend
}

// info is that of the wrapped backend, but for operations being held.
func (w *wrapper) info(inline bool) Info {
	info := w.inner.Info()
	info.Inline = info.Inline && inline
	return info
}

// Resize implements Resizer if the wrapped backend does.
func (w *wrapper) Resize(size int64) error {
	r, ok := w.inner.(Resizer)
	if !ok {
		return fmt.Errorf("%w: %T has a fixed size", ErrResize, w.inner)
	}
	return r.Resize(size)
}

// Close closes the wrapped backend.
func (w *wrapper) Close() error { return w.inner.Close() }

// passage is a wrapper's channel to the wrapped backend.
type passage struct {
	inner Channel
	p     *poller.Poller
	polls bool // inner has to be polled
}

func (w *wrapper) open(p *poller.Poller) (passage, error) {
	inner, err := w.inner.Open(p)
	return passage{inner: inner, p: p, polls: !w.inner.Info().Inline}, err
}

// pass lets an operation that was held go on.
func (c *passage) pass(op *Op) {
	if c.inner.Submit(op) {
		op.Owner.Done(op)
	}
}

func (c *passage) poll(now int64) int {
	if !c.polls {
		return 0
	}
	return c.inner.Poll(now)
}

// arm is Arm of the wrapped channel, with a deadline of the wrapper's if that
// is not 0.
func (c *passage) arm(now, due int64) (deadline int64, ok bool) {
	deadline, ok = c.inner.Arm(now)
	if due != 0 && (deadline == 0 || due < deadline) {
		deadline = due
	}
	return deadline, ok
}

// Close implements Channel.
func (c *passage) Close() { c.inner.Close() }
