package poller

import "context"

// CallAnyway is [Poller.Call] for tearing down, which must also happen if the
// poller is closed: then it waits until nothing of the poller runs any more,
// and fn runs on the caller's goroutine, which counts as the core meanwhile.
// Callers take turns, so that fn never needs a lock. A poller that is not
// running must be stepped or closed for fn to run.
func (p *Poller) CallAnyway(fn func()) {
	began := false
	err := p.Call(context.Background(), func() {
		began = true
		fn()
	})
	// A function that ends the poller by runtime.Goexit has had its turn.
	if err != nil && !began {
		<-p.done
		p.runAfter(fn)
	}
}

// runAfter runs fn on a poller that has ended.
func (p *Poller) runAfter(fn func()) {
	p.after.Lock()
	defer p.after.Unlock()
	p.owner.Store(goroutine())
	defer p.owner.Store(0)
	fn()
}
