package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"

	_ "github.com/qpoll/qpoll/tcp" // trtype:tcp
)

// session is a connected controller with its queues, ready for I/O.
type session struct {
	address nvme.Address
	pollers *poller.Group
	ctrl    *nvme.Controller
	ns      *nvme.Namespace
	queues  []*nvme.NamespaceQueue
	lost    chan error // the controller stopped being live, and why
}

// closeTimeout bounds the politeness of closing.
const closeTimeout = 10 * time.Second

// address parses what the user gave, and adds what flags say.
func (o *options) address(target string) (nvme.Address, error) {
	a, err := nvme.ParseAddress(target)
	if err != nil {
		return a, err
	}
	if a.Options == nil {
		a.Options = map[string]string{}
	}
	if o.headerDigest {
		a.Options["hdr_digest"] = "on"
	}
	if o.dataDigest {
		a.Options["data_digest"] = "on"
	}
	return a, nil
}

// open connects to the controller and makes the queues. What was opened before
// an error is closed again.
func (o *options) open(ctx context.Context, l *layout, target string) (s *session, err error) {
	s = &session{lost: make(chan error, 1)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.address, err = o.address(target); err != nil {
		return s, err
	}
	if s.pollers, err = poller.NewGroup(l.load, l.poller("bench")); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.connectTimeout,
		fmt.Errorf("%w: no answer within %v", nvme.ErrTimeout, o.connectTimeout))
	defer cancel()
	if s.ctrl, err = nvme.OpenAddress(ctx, s.address, o.controller(len(l.load), s.lost)); err != nil {
		return s, err
	}
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
	r, err := load.New(o.workload())
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
}
