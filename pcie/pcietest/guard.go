package pcietest

import (
	"runtime"
	"runtime/debug"
)

// A driver in another process can cut off the file that it has let the
// controller map: an access to what was there then faults. That is to be a fatal
// error of the controller, not the end of the program.

// guarded makes some passes.
func (c *Controller) guarded(now int64, count int) (n int) {
	if !c.client.remote {
		return c.passes(now, count)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer c.recoverFault()
	return c.passes(now, count)
}

// touch calls f, which accesses memory of the driver, outside of a pass.
func (c *Controller) touch(f func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer c.recoverFault()
	f()
}

// recoverFault turns a memory fault into a fatal error; any other panic goes
// on.
func (c *Controller) recoverFault() {
	r := recover()
	if r == nil {
		return
	}
	e, ok := r.(runtime.Error)
	at, addressed := r.(interface{ Addr() uintptr })
	if !ok || !addressed || !c.client.remote {
		panic(r)
	}
	_ = at
	c.fault(Fault{What: "the memory behind a mapping is gone: " + e.Error(), QID: c.cur.qid, CID: c.cur.cid})
	c.regs.csts.CFS = true
	c.forget()
}
