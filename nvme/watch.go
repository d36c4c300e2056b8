package nvme

import (
	"time"

	"github.com/qpoll/qpoll/poller"
)

// watch calls a function at intervals on a core, to look for what does not
// arrive. If the poller was held up in between, by a callback or the machine,
// the function comes one pass later: what did arrive is taken first.
type watch struct {
	timer *poller.Timer
	last  int64
	ended bool
}

// newWatch begins a watch. On the core, as all of its methods.
func newWatch(p *poller.Poller, every time.Duration, look func()) *watch {
	w := &watch{last: p.Now()}
	w.timer = p.AfterFunc(every, func() {
		late := p.Now()-w.last > 2*int64(every)
		w.last = p.Now()
		if late {
			w.timer.Reset(0)
			return
		}
		if look(); !w.ended {
			w.timer.Reset(every)
		}
	})
	return w
}

// stop ends a watch, nil included.
func (w *watch) stop() {
	if w != nil {
		w.ended = true
		w.timer.Stop()
	}
}
