package poller

import "github.com/qpoll/qpoll/internal/invariants"

// goroutine identifies the calling goroutine among those alive: the address of
// the runtime's structure for it. It is compared, never followed.
//
//go:noescape
func goroutine() uintptr

// OnCore reports whether the caller runs on this poller: on its own thread,
// or, for a poller that is stepped, within Poll. It costs 2 ns and may be
// called from any goroutine.
func (p *Poller) OnCore() bool { return p.owner.Load() == goroutine() }

// checkOwner is CheckCore for methods of this package.
func (p *Poller) checkOwner(method string) { p.CheckCore("poller: " + method) }

// CheckCore panics in programs built with the tag invariants, or for the race
// detector, if the caller may not touch what belongs to the core: it may on the
// core, and as long as nobody runs the poller. In other programs it costs
// nothing. what is what the caller is about to do, for the message.
func (p *Poller) CheckCore(what string) {
	if invariants.Enabled && !p.OnCore() && p.owner.Load() != 0 {
		panic(what + " called off the core of poller " + p.name)
	}
}
