package guest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/qpoll/qpoll/internal/guest/wire"
)

// stream is one request in progress.
type stream struct {
	g    *Guest
	ctx  context.Context
	st   *yamux.Stream
	stop func() bool
	wmu  sync.Mutex // data and signals come from different goroutines
	buf  []byte
}

// open sends a request. When ctx ends, the stream does.
func (g *Guest) open(ctx context.Context, req *wire.Request) (*stream, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	st, err := g.sess.OpenStream()
	if err != nil {
		return nil, g.explain(ctx, err)
	}
	s := &stream{g: g, ctx: ctx, st: st}
	s.stop = context.AfterFunc(ctx, func() { _ = st.SetDeadline(time.Unix(1, 0)) })
	if err := wire.WriteJSON(st, wire.KindRequest, req); err != nil {
		s.close()
		return nil, g.explain(ctx, err)
	}
	return s, nil
}

func (s *stream) close() {
	s.stop()
	s.st.Close()
}

func (s *stream) send(k wire.Kind, b []byte) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	return wire.WriteFrame(s.st, k, b)
}

// next returns the next frame, valid until the call after it.
func (s *stream) next() (wire.Kind, []byte, error) {
	k, b, err := wire.ReadFrame(s.st, s.buf)
	if err != nil {
		return 0, nil, s.g.explain(s.ctx, err)
	}
	if cap(b) > cap(s.buf) {
		s.buf = b
	}
	return k, b, nil
}

// result reads frames until the result. Data goes to the sinks, which may be nil.
func (s *stream) result(data, stderr func([]byte) error) (*wire.Result, error) {
	for {
		k, b, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case k == wire.KindResult:
			return wire.DecodeResult(b)
		case k == wire.KindData && data != nil:
			err = data(b)
		case k == wire.KindStderr && stderr != nil:
			err = stderr(b)
		default:
			err = fmt.Errorf("guest: unexpected frame of kind %d", k)
		}
		if err != nil {
			return nil, err
		}
	}
}

// DefaultTimeout bounds Until, Run, Shell and the operations on files when their
// context has no deadline of its own. It is for a hung guest, not for a slow one.
const DefaultTimeout = 5 * time.Minute

var errTimeout = fmt.Errorf("guest: no answer in %v: %w", DefaultTimeout, context.DeadlineExceeded)

// bound gives ctx a deadline if it has none.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, DefaultTimeout, errTimeout)
}

// call makes a request that has a result only.
func (g *Guest) call(ctx context.Context, req *wire.Request) (*wire.Result, error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	s, err := g.open(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.close()
	res, err := s.result(nil, nil)
	if err != nil {
		return nil, err
	}
	return res, res.Err.Unpack()
}

// Until calls cond about every 20 ms until it returns true or an error, or ctx
// ends, or the guest does. What completes "waiting for" in the error.
func (g *Guest) Until(ctx context.Context, what string, cond func() (bool, error)) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := cond()
		if ok && err == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("guest: waiting for %s: %w", what, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("guest: waiting for %s: %w", what, context.Cause(ctx))
		case <-g.Done():
			return fmt.Errorf("guest: waiting for %s: %w", what, g.explain(ctx, errors.New("ended")))
		}
	}
}
