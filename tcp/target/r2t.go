//qpoll:hot

package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// transfer is an R2T that the host is answering. It stands in
// outbound.transfers at its transfer tag: maxR2T of them for each request.
type transfer struct {
	begin, next uint32 // offsets in the data of the command
	left        uint32 // bytes; 0: not in use
}

// requestData asks for the data of a command, as much of it at a time as is
// allowed.
func (c *conn) requestData(r *request) {
	r.state = reqTransfer
	c.ask(r)
}

// ask sends R2Ts until as many are outstanding as may be.
func (c *conn) ask(r *request) {
	base := int(r.index) * int(c.out.maxR2T)
	for i := 0; r.asked < r.length && i < int(c.out.maxR2T); i++ {
		t := &c.out.transfers[base+i]
		if t.left != 0 {
			continue
		}
		b := c.tx.reserve(headerRoom)
		if b == nil {
			c.waitForRoom(r)
			return
		}
		n := min(r.length-r.asked, c.out.r2tLength)
		*t = transfer{begin: r.asked, next: r.asked, left: n}
		(*pdu.R2T)(b).Encode(&c.out.r2t, pdu.R2TFields{CCCID: r.cmd.CID, TTAG: uint16(base + i), R2TO: r.asked, R2TL: n})
		c.tx.commit(c.out.r2t.Finish(b, false))
		c.w.queueSend(c)
		r.asked += n
		r.r2ts++
	}
}

// waitForRoom has a request go on when there is room in the send queue.
func (c *conn) waitForRoom(r *request) {
	if !r.queued {
		r.queued = true
		c.waiting.push(r)
	}
}

// h2cData takes the header of an H2CData.
func (c *conn) h2cData(b []byte, shape pdu.Shape) int {
	h := (*pdu.H2CData)(b)
	if err := h.Check(shape); err != nil {
		return c.protocolError(err, b)
	}
	tag, n := int(h.TTAG()), shape.Data()
	if tag >= len(c.out.transfers) || c.out.transfers[tag].left == 0 {
		return c.badTransfer(h, pdu.OffTTAG)
	}
	t := &c.out.transfers[tag]
	r := &c.requests[tag/int(c.out.maxR2T)]
	if r.cmd.CID != h.CCCID() {
		return c.badTransfer(h, pdu.OffCCCID)
	}
	if off := h.DATAO(); off != t.next || n > t.left {
		return c.badOffset(h, t)
	}
	if last := shape.Flags()&pdu.LastPDU != 0; last != (n == t.left) {
		return c.badLast(h, last)
	}
	in := &c.in
	*in = inbound{
		req: r, left: n, total: n, slot: tag, h2c: true,
		pad: uint32(shape.PDO() - shape.Head()), ddgst: shape.DDGST(),
	}
	if r.buf != nil {
		in.to = r.buf.b[t.next : t.next+n]
	}
	c.beginData()
	return shape.Head()
}

// transferred follows the data of an H2CData.
func (c *conn) transferred(r *request, tag int, n uint32, intact bool) {
	if !intact {
		r.status = nvme.StatusTransientTransportError
	}
	t := &c.out.transfers[tag]
	t.next += n
	t.left -= n
	r.got += n
	if t.left > 0 {
		return
	}
	r.r2ts--
	if r.got < r.length {
		if r.asked < r.length && !r.queued {
			c.ask(r)
		}
		return
	}
	r.length = 0
	if r.buf != nil {
		r.op.Data = r.buf.b[:r.got]
	}
	c.dataArrived(r)
}
