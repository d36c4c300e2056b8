//qpoll:hot

package target

import (
	"math/bits"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// respond answers a command: with its data, if it has any for the host, and
// its status.
func (c *conn) respond(r *request) {
	r.state = reqResponding
	if c.waiting.head != nil || !c.encode(r) {
		c.waitForRoom(r)
	}
	c.w.queueSend(c)
}

// encode queues what is to be sent for a request, or returns false if there is
// no room for all of it now.
func (c *conn) encode(r *request) bool {
	if r.state == reqTransfer {
		c.ask(r)
		return !r.queued
	}
	for r.sent < r.length {
		ok, success := c.encodeData(r)
		if !ok {
			return false
		}
		if success {
			c.nextHead() // there is no response to tell it
			c.sentAll(r)
			return true
		}
	}
	b := c.tx.reserve(headerRoom)
	if b == nil {
		return false
	}
	cpl := nvme.Completion{
		Result: r.result, SQHead: c.nextHead(), SQID: c.qid, CID: r.cmd.CID, StatusPhase: uint16(r.status) << 1,
	}
	(*pdu.CapsuleResp)(b).Encode(&c.out.resp, &cpl)
	c.tx.commit(c.out.resp.Finish(b, false))
	c.sentAll(r)
	return true
}

// sentAll has a request wait until all that is queued for it was sent.
func (c *conn) sentAll(r *request) {
	r.state = reqSending
	r.end = c.tx.queued
	c.sending.push(r)
}

// nextHead frees an entry of the submission queue and returns the new head. It
// is freed when its command is done, not when it has come, so that there are
// never more commands than requests. Without flow control the value says that
// in the response to Connect, and is reserved in others.
func (c *conn) nextHead() uint16 {
	if !c.flowControl {
		return nvme.SQHeadNoFlowControl
	}
	if c.sqHead++; c.sqHead >= c.sqSize {
		c.sqHead = 0
	}
	return c.sqHead
}

// encodeData queues one C2HData, or returns false if there is no room now. It
// also reports whether the PDU says that the command has succeeded, so that
// there is no response capsule.
func (c *conn) encodeData(r *request) (ok, success bool) {
	off := r.sent
	n := min(r.length-off, c.out.maxC2H)
	room := uint32(headerRoom)
	if n < copyBelow {
		room += n
	}
	b := c.tx.reserve(room)
	if b == nil {
		return false, false
	}
	flags := pdu.Flags(0)
	if off+n == r.length {
		flags = pdu.LastPDU
		if success = c.out.success && r.status == 0 && r.result == 0; success {
			flags |= pdu.Success
		}
	}
	(*pdu.C2HData)(b).Encode(&c.out.data, flags, pdu.C2HDataFields{CCCID: r.cmd.CID, DATAO: off, DATAL: n})
	used := c.out.data.Finish(b, true)
	c.attach(b, used, r, off, n)
	r.sent += n
	return true, success
}

// attach queues used bytes of header at the start of b, and n bytes of the
// request's data with their digest: copied if short, from where they are if
// not. b has room for either.
func (c *conn) attach(b []byte, used int, r *request, off, n uint32) {
	data := r.op.Data[off : off+n]
	if n < copyBelow {
		used += copy(b[used:], data)
		if c.out.ddgst {
			pdu.PutDigest(b[used:], pdu.Digest(data))
			used += pdu.DigestSize
		}
		c.tx.commit(used)
		return
	}
	c.tx.commit(used)
	x := note(0)
	if r.unsafe {
		x = r.blockNote(off)
	}
	c.tx.data(data, x)
	if c.out.ddgst {
		at := c.tx.head & c.tx.mask
		pdu.PutDigest(c.tx.mem[at:], pdu.Digest(data))
		c.tx.commit(pdu.DigestSize)
	}
}

// blockNote describes a piece that begins off bytes into the data of a command.
func (r *request) blockNote(off uint32) note {
	size := r.ns.blockSize
	return noteUnsafe | note(bits.TrailingZeros32(size))<<48 | note(off&(size-1))
}

// encodeWaiting goes on with requests that found no room.
func (c *conn) encodeWaiting() {
	for c.waiting.head != nil {
		r := c.waiting.pop()
		r.queued = false
		if !c.encode(r) {
			if !r.queued {
				r.queued = true
				c.waiting.pushFront(r)
			}
			return
		}
	}
}

// status answers a command that has nothing to transfer.
func (c *conn) status(r *request, s nvme.Status, result uint64) {
	r.status, r.result = s, result
	c.respond(r)
}
