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
	if s.p.OnCore() {
		return nil, ErrOnCore // it may be about to end
	}
	s.refs++
	return s.p, nil
}

func releaseSharedPoller() {
	s := &sharedPoller
	s.mu.Lock()
	var last *poller.Poller
	if s.refs--; s.refs == 0 {
		last, s.p = s.p, nil
	}
	s.mu.Unlock()
	if last != nil {
		last.Close() // not under the lock: what runs there may want it
	}
}
