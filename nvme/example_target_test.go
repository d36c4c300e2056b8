package nvme_test

import (
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"
)

// serve starts a target for an example to talk to.
func serve() (address string, stop func()) {
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		panic(err)
	}
	t, err := target.New(target.Config{})
	if err != nil {
		panic(err)
	}
	if err := p.Start(); err != nil {
		panic(err)
	}
	if err := t.Start(p); err != nil {
		panic(err)
	}
	return t.Address(""), func() {
		_ = t.Close()
		_ = p.Close()
	}
}
