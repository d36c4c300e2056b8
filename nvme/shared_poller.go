package nvme

import (
	"sync"

	"github.com/qpoll/qpoll/poller"
)

// sharedPoller runs the admin queues and blocking calls of the controllers
// that were given no poller of their own. It lives while one of them does.
var sharedPoller struct {
	mu   sync.Mutex
	p    *poller.Poller
	refs int
}

func acquireSharedPoller() (*poller.Poller, error) {
	s := &sharedPoller
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p == nil {
		p, err := poller.New(poller.Config{Name: "qpoll-shared", Unpinned: true, Idle: poller.Adaptive})
		if err != nil {
			return nil, err
		}
		if err := p.Start(); err != nil {
			return nil, err
		}
		s.p = p
	}
	s.refs++
	return s.p, nil
}

func releaseSharedPoller() {
	s := &sharedPoller
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs--; s.refs == 0 {
		s.p.Close()
		s.p = nil
	}
}
