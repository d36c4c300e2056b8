package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// A fused operation is two commands, one right behind the other in the
// submission queue, that are executed as one (Base Specification 3.4.2). There
// is one: Compare and Write.

// fusedCommand takes a command that is half of a fused operation, or one that
// is not though the command before was a first half.
func (c *conn) fusedCommand(r *request, data []byte) {
	switch r.cmd.Flags & nvme.FlagFuseMask {
	case nvme.FlagFuseFirst:
		c.missingSecond()
		c.fusedFirst(r, data)
	case nvme.FlagFuseSecond:
		c.fusedSecond(r, data)
	case nvme.FlagFuseNone:
		c.missingSecond()
		c.ioCommand(r, data)
	default:
		c.missingSecond()
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
	}
}

// missingSecond fails a first half that no second half has followed.
func (c *conn) missingSecond() {
	c.fusedFailed = false
	if first := c.fused; first != nil {
		c.fused = nil
		c.failHalf(first, nvme.StatusAbortedMissingFused)
	}
}

// damaged fails a command whose in-capsule data has not the digest that came
// with it.
func (c *conn) damaged(r *request) {
	switch r.cmd.Flags & nvme.FlagFuseMask {
	case nvme.FlagFuseFirst:
		c.missingSecond()
		c.fusedFailed = true
	case nvme.FlagFuseSecond:
		if first := c.fused; first != nil {
			c.fused = nil
			c.failHalf(first, nvme.StatusAbortedFailedFused)
		}
	default:
		c.missingSecond()
	}
	c.fail(r, nvme.StatusTransientTransportError)
}

// failHalf fails half of a fused operation: now, or when its data is there.
func (c *conn) failHalf(r *request, s nvme.Status) {
	if r.state == reqFused {
		c.fail(r, s)
		return
	}
	r.status = s
}

// fusedFirst takes the Compare.
func (c *conn) fusedFirst(r *request, data []byte) {
	e, s := c.locate(r)
	switch {
	case c.cold.sub.cfg.NoFused || r.cmd.Opcode != nvme.OpCompare:
		s = nvme.StatusInvalidField | nvme.StatusDNR
	case s == 0 && r.op.Length > int64(c.out.maxTransfer):
		s = nvme.StatusInvalidField | nvme.StatusDNR
	case s == 0:
		s = e.writable
	}
	if s != 0 {
		c.fusedFailed = true
		c.fail(r, s)
		return
	}
	r.op.Kind = backend.CompareAndWrite
	r.op.FUA = false
	r.steps = true
	c.fused = r
	c.bind(r, e)
	c.takeData(r, data, uint32(r.op.Length))
	if r.state == reqResponding || r.state == reqSending { // refused after all
		c.fused, c.fusedFailed = nil, true
	}
}

// fusedSecond takes the Write.
func (c *conn) fusedSecond(r *request, data []byte) {
	first := c.fused
	c.fused = nil
	if first == nil {
		s := nvme.StatusAbortedMissingFused
		if c.fusedFailed {
			s = nvme.StatusAbortedFailedFused
		}
		c.fusedFailed = false
		c.fail(r, s)
		return
	}
	const range12 = 0xffff
	f, g := &first.cmd, &r.cmd
	if g.Opcode != nvme.OpWrite || f.NSID != g.NSID || f.CDW10 != g.CDW10 || f.CDW11 != g.CDW11 || (f.CDW12^g.CDW12)&range12 != 0 {
		c.failHalf(first, nvme.StatusAbortedFailedFused)
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	first.op.FUA = g.CDW12&nvme.IOFUA != 0
	first.pair, r.pair = r, first
	r.op.Kind = backend.CompareAndWrite // so that its data gets memory
	c.takeData(r, data, uint32(first.op.Length))
	if r.pair == first && (r.state == reqResponding || r.state == reqSending) { // refused after all
		first.pair, r.pair = nil, nil
		c.failHalf(first, nvme.StatusAbortedFailedFused)
	}
}

// fusedArrived is told when a half has its data.
func (c *conn) fusedArrived(r *request) {
	pair := r.pair
	if r.status != 0 {
		if pair != nil {
			r.pair, pair.pair = nil, nil
			c.failHalf(pair, nvme.StatusAbortedFailedFused)
		}
		if c.fused == r { // the second half has not come yet
			c.fused, c.fusedFailed = nil, true
		}
		c.fail(r, r.status)
		return
	}
	r.state = reqFused
	if r.buf == nil {
		c.keep(r) // it lies in the capsule
	}
	if pair == nil || pair.state != reqFused {
		return
	}
	first, second := r, pair
	if first.cmd.Opcode != nvme.OpCompare {
		first, second = second, first
	}
	first.op.Second = second.op.Data
	second.state = reqPaired
	c.stats.writes++
	c.stats.writtenBytes += uint64(first.op.Length)
	c.submit(first)
}

// fusedExecuted answers both halves.
func (c *conn) fusedExecuted(first *request) {
	second := first.pair
	first.pair, second.pair = nil, nil
	first.op.Second = nil
	if s := first.op.Status; !s.OK() {
		c.fail(first, s)
		c.fail(second, nvme.StatusAbortedFailedFused)
		return
	}
	c.respond(first)
	c.respond(second)
}
