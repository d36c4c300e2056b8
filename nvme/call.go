package nvme

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// call is one blocking command. Its data is bounced through memory of its own,
// so that a caller who gives up may reuse his.
type call struct {
	q    *QueuePair
	ns   *Namespace
	mine bool // the library's own
	cmd  Command
	data Data
	cpl  Completion
	err  error // why it was not submitted
	lost error // why the queue was lost, if that ended the command
	done chan struct{}
}

func newCall(q *QueuePair, cmd *Command, buf []byte) (*call, error) {
	dir := cmd.Opcode.Direction()
	if cmd.Opcode == OpFabrics {
		dir = Direction(cmd.NSID & 3) // the fabrics command type
	}
	k := &call{q: q, cmd: *cmd, done: make(chan struct{})}
	if len(buf) == 0 {
		return k, nil
	}
	switch {
	case dir == DirNone:
		return nil, fmt.Errorf("%w: %d bytes for opcode %#x, which says that it moves none", ErrLength, len(buf), uint8(cmd.Opcode))
	case dir == DirBoth:
		return nil, fmt.Errorf("%w: opcode %#x moves data both ways", ErrUnsupported, uint8(cmd.Opcode))
	case uint64(len(buf)) > math.MaxUint32:
		return nil, fmt.Errorf("%w: %d bytes", ErrLength, len(buf))
	}
	k.data = Data{Buf: make([]byte, len(buf)), Len: uint32(len(buf)), Dir: dir}
	if dir == DirOut {
		copy(k.data.Buf, buf)
	}
	return k, nil
}

// submit implements waiter.
func (k *call) submit() (full bool) {
	var err error
	if k.mine {
		err = k.q.postOwn(&k.cmd, k.data, 0, callDone, k)
	} else {
		err = k.q.submitRaw(&k.cmd, k.data, k.ns, callDone, k)
	}
	if errors.Is(err, ErrQueueFull) {
		return true
	}
	if err != nil {
		k.err = err
		close(k.done)
	}
	return false
}

// own implements waiter.
func (k *call) own() bool { return k.mine }

func callDone(arg any, cpl *Completion) {
	k := arg.(*call)
	k.cpl = *cpl
	if cpl.Status().IsPath() {
		k.lost = k.q.cold.err
	}
	close(k.done)
}

// wait returns the completion, with its status as an error.
func (k *call) wait(ctx context.Context, buf []byte) (Completion, error) {
	select {
	case <-k.done:
	case <-ctx.Done():
		return Completion{}, ctxError(ctx)
	}
	if k.err != nil {
		return Completion{}, k.err
	}
	if k.data.Dir == DirIn {
		copy(buf, k.data.Buf)
	}
	err := k.cpl.Status().Err()
	if err != nil && k.lost != nil {
		err = fmt.Errorf("%w: %w", err, k.lost)
	}
	return k.cpl, err
}

func ctxError(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// DoInternal posts a command as PostInternal does, on a queue that is connected,
// and waits for it, and for a tracker if need be. For transports; any goroutine
// but the poller's.
func (q *QueuePair) DoInternal(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	if q.p.OnCore() {
		return Completion{}, ErrOnCore
	}
	k, err := newCall(q, cmd, buf)
	if err != nil {
		return Completion{}, err
	}
	k.mine = true
	return k.do(ctx, buf)
}

// do has k submitted and waits for it.
func (k *call) do(ctx context.Context, buf []byte) (Completion, error) {
	if err := post(ctx, k.q.p, func() { k.q.enter(k) }); err != nil {
		return Completion{}, err
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		postLater(k.q.p, func() { k.q.giveUp(k) })
	}
	return k.wait(ctx, buf)
}

func (c *Controller) passthrough(ctx context.Context, q *QueuePair, ns *Namespace, cmd *Command, buf []byte) (Completion, error) {
	if c.onCore() {
		return Completion{}, ErrOnCore
	}
	if err := c.checkTransfer(uint64(len(buf))); err != nil {
		return Completion{}, err
	}
	if err := c.waitLive(ctx); err != nil {
		return Completion{}, err
	}
	// Nothing is sent for a caller who has given up already.
	if err := ctxError(ctx); err != nil {
		return Completion{}, err
	}
	k, err := newCall(q, cmd, buf)
	if err != nil {
		return Completion{}, err
	}
	k.ns = ns
	return k.do(ctx, buf)
}

// checkTransfer refuses a transfer that no single command may carry.
func (c *Controller) checkTransfer(n uint64) error {
	if m := c.MaxTransfer(); m != 0 && n > uint64(m) {
		return fmt.Errorf("%w: %d bytes, one command moves at most %d", ErrLength, n, m)
	}
	return nil
}
