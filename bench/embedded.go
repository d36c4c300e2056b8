package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
)

// embed starts the target that is measured if no other is named.
func (o *options) embed(l *layout) (*endpoint, error) {
	b, err := newBackend(o.backend, o.capacity, "")
	if err != nil {
		return nil, err
	}
	cfg := target.Config{Subsystems: []target.SubsystemConfig{{
		NQN:        target.DefaultNQN,
		IOQueues:   len(l.load)*o.queues + 1, // and one to fill it with
		Namespaces: []target.NamespaceConfig{{NSID: 1, Backend: b}},
	}}}
	s, err := startServer(cfg, l.target, l.poller("target"))
	if err != nil {
		return nil, err
	}
	e := &endpoint{
		what:  fmt.Sprintf("embedded target on %s, with a namespace of kind %s", coreNames(l.target), o.backend),
		close: s.close,
	}
	if e.address, err = o.address(s.Address("")); err != nil {
		return nil, errors.Join(err, s.close())
	}
	e.target = e.address.String()
	return e, nil
}

// precondition writes all of the memory of a target of our own once. What was never
// written reads from one page of zeros, which is not what memory costs.
func (o *options) precondition(ctx context.Context, ns *nvme.Namespace) error {
	if !o.keeps() {
		return nil
	}
	buf := make([]byte, 1<<20)
	for i := range buf {
		buf[i] = byte(i>>9) | 1
	}
	for off := int64(0); off < ns.Size(); off += int64(len(buf)) {
		if _, err := ns.WriteAtContext(ctx, buf[:min(int64(len(buf)), ns.Size()-off)], off); err != nil {
			return fmt.Errorf("fill the namespace: %w", err)
		}
	}
	return nil
}
