package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/poller"
)

// session is a connected controller with its queues, ready for I/O.
type session struct {
	*endpoint
	pollers *poller.Group
	ctrl    *nvme.Controller
	ns      *nvme.Namespace
	queues  []*nvme.NamespaceQueue
	lost    chan error // the controller stopped being live, and why
	notes   notes
	buffers [][]byte // from ctrl
}

// closeTimeout bounds the politeness of closing.
const closeTimeout = 10 * time.Second

// open connects to the controller and makes the queues. What was opened before
// an error is closed again.
func (o *options) open(ctx context.Context, l *layout, e *endpoint) (s *session, err error) {
	s = &session{endpoint: e, lost: make(chan error, 1)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.pollers, err = poller.NewGroup(l.load, l.poller(loadName)); err != nil {
		return s, err
	}
	if err = o.connect(ctx, s, l); err != nil {
		return s, err
	}
	ctx, cancel := o.patience(ctx, o.connectTimeout)
	defer cancel()
	if s.ns, err = s.ctrl.Namespace(ctx, uint32(o.nsid)); err != nil {
		return s, s.noNamespace(ctx, o.nsid, err)
	}
	for _, p := range s.pollers.Pollers() {
		for range o.queues {
			q, err := s.ns.Queue(ctx, p, nvme.QueueConfig{Size: o.depth + 1})
			if err != nil {
				return s, err
			}
			s.queues = append(s.queues, q)
		}
	}
	return s, nil
}

// connect opens the controller.
func (o *options) connect(ctx context.Context, s *session, l *layout) (err error) {
	cfg := o.controller(len(l.load), s.lost)
	if s.open == nil {
		ctx, cancel := o.patience(ctx, o.connectTimeout)
		defer cancel()
		s.ctrl, err = nvme.OpenAddress(ctx, s.address, cfg)
		return err
	}
	dev, err := s.open(ctx)
	if err != nil {
		return err
	}
	t, err := pcie.New(dev, &pcie.Config{
		Interrupts: l.shared || l.adaptive, NoIOMMU: o.noIOMMU, Logger: slog.New(&s.notes),
	})
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	// A drive may take its time to become ready, and says itself how long.
	s.ctrl, err = nvme.NewController(ctx, t, cfg)
	return err
}

// controller is what a measurement wants from a controller: a loss is to be
// seen, not mended.
func (o *options) controller(cores int, lost chan<- error) *nvme.Config {
	return &nvme.Config{
		IOQueues:          cores*o.queues + 1, // and one for blocking calls
		ConnectTimeout:    o.connectTimeout,
		Retries:           -1,
		ReconnectDelay:    time.Nanosecond,
		FastIOFailTimeout: time.Nanosecond,
		CtrlLossTimeout:   time.Nanosecond,
		Events: &nvme.Events{
			State: func(_ *nvme.Controller, from, _ nvme.State, err error) {
				if from != nvme.StateLive || err == nil {
					return
				}
				select {
				case lost <- err:
				default:
				}
			},
		},
	}
}

// noNamespace says which namespaces there are, if that is what was wrong.
func (s *session) noNamespace(ctx context.Context, nsid int, err error) error {
	if !errors.Is(err, nvme.ErrNoNamespace) {
		return err
	}
	list, listErr := s.ctrl.ActiveNamespaces(ctx)
	if listErr != nil {
		return err
	}
	return &missingNamespace{nsid: nsid, have: list, err: err}
}

// missingNamespace is a namespace that is not there, with those that are.
type missingNamespace struct {
	nsid int
	have []uint32
	err  error
}

func (e *missingNamespace) Error() string { return e.err.Error() }
func (e *missingNamespace) Unwrap() error { return e.err }

// run puts the workload on all queues.
func (s *session) run(o *options) (*load.Run, error) {
	wl := o.workload()
	wl.Alloc = s.allocator()
	r, err := load.New(wl)
	if err != nil {
		return nil, err
	}
	for _, q := range s.queues {
		if err := r.Add(q.QueuePair().Poller(), q); err != nil {
			return nil, fmt.Errorf("namespace %d: %w", o.nsid, err)
		}
	}
	return r, nil
}

// cause returns why the controller was lost, if it was, with what that has led
// to.
func (s *session) cause(err error) error {
	var st nvme.Status
	if !errors.As(err, &st) || st.Code() != nvme.StatusCommandAbortedByHost && st.Code() != nvme.StatusHostPathError {
		return err
	}
	select {
	case lost := <-s.lost:
		return fmt.Errorf("the controller was lost: %w; %w", lost, err)
	case <-time.After(time.Second): // it is on its way
		return err
	}
}

// allocator returns what allocates memory that the controller reaches by itself,
// nil if there is no such memory.
func (s *session) allocator() func(n int) ([]byte, error) {
	if _, ok := s.ctrl.Transport().(nvme.MemoryTransport); !ok {
		return nil
	}
	return s.alloc
}

func (s *session) alloc(n int) ([]byte, error) {
	b, err := s.ctrl.Alloc(n)
	if err == nil {
		s.buffers = append(s.buffers, b)
	}
	return b, err
}

// close takes everything down, the controller in an orderly way if it answers.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.ctrl != nil {
		_ = s.ctrl.Close(ctx)
	}
	if s.pollers != nil {
		_ = s.pollers.Close()
	}
	for _, b := range s.buffers {
		_ = s.ctrl.Free(b)
	}
}
