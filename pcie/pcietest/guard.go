package pcietest

import (
	"runtime"
	"runtime/debug"
)

// guarded is a pass over the queues that survives memory that is no longer
// there: a driver in another process can cut off the file that it has let the
// controller map. The controller then has a fatal error.
func (c *Controller) guarded() (n int) {
	if !c.client.remote {
		return c.queues()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			c.recovered(r)
		}
	}()
	return c.queues()
}

// recovered turns a memory fault into a fatal error; any other panic goes on.
func (c *Controller) recovered(r any) {
	e, ok := r.(runtime.Error)
	fault, addressed := r.(interface{ Addr() uintptr })
	if !ok || !addressed {
		panic(r)
	}
	_ = fault.Addr()
	c.fault(Fault{What: "memory behind a mapping is gone: " + e.Error(), QID: c.cur.qid, CID: c.cur.cid})
	c.regs.csts.CFS = true
}
