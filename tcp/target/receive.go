//qpoll:hot

package target

import (
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

type rxMode uint8

const (
	rxHeader rxMode = iota // the next byte begins a PDU
	rxPad                  // in the padding before data
	rxData                 // in the data of a PDU that did not arrive as a whole
	rxDigest               // in the digest after it
	rxDrain                // nothing that comes is looked at any more
)

// directFrom is how much data must be to come for it to be received straight
// to where it belongs, past the staging memory.
const directFrom = 16 << 10

// inbound is the PDU whose data is being received.
type inbound struct {
	req    *request
	to     []byte // where what is still to come belongs; nil: it is dropped
	left   uint32 // bytes of data to come
	pad    uint32 // bytes to skip before the data
	total  uint32 // bytes of data in this PDU
	digest uint32 // of the data so far
	slot   int    // transfer that it belongs to, of an H2CData
	h2c    bool
	ddgst  bool
}

// receive takes what the socket has, with one call, and acts on it. It returns
// 0 if there was nothing.
func (c *conn) receive() int {
	if c.mode == rxData && c.in.left >= directFrom && c.in.to != nil {
		return c.receiveDirect()
	}
	b := c.w.staging
	k := copy(b, c.carry[:c.carried])
	n, err := sys.Recv(c.fd, b[k:])
	if err != 0 {
		if err != sys.EAGAIN {
			c.lost(err)
		}
		return 0
	}
	if n == 0 {
		c.ended()
		return 1
	}
	c.carried = 0
	c.parse(b[:k+n])
	return 1
}

// receiveDirect receives data to where it belongs, and what follows into the
// staging memory, with one call.
func (c *conn) receiveDirect() int {
	w := c.w
	w.readv[0].Set(c.in.to)
	w.readv[1].Set(w.staging)
	n, err := sys.Readv(c.fd, w.readv[:])
	if err != 0 {
		if err != sys.EAGAIN {
			c.lost(err)
		}
		return 0
	}
	if n == 0 {
		c.ended()
		return 1
	}
	c.refreshView()
	direct := min(n, len(c.in.to))
	c.advance(c.in.to[:direct])
	c.parse(w.staging[:n-direct])
	return 1
}

// parse acts on what was received.
func (c *conn) parse(b []byte) {
	c.refreshView()
	for len(b) > 0 {
		n := 0
		switch c.mode {
		case rxHeader:
			n = c.header(b)
		case rxPad:
			n = min(int(c.in.pad), len(b))
			if c.in.pad -= uint32(n); c.in.pad == 0 {
				c.mode = rxData
			}
		case rxData:
			n = min(int(c.in.left), len(b))
			copy(c.in.to, b[:n])
			c.advance(b[:n])
		case rxDigest:
			n = c.digest(b)
		case rxDrain:
			return
		}
		if n == 0 { // the rest is on its way
			c.carried = copy(c.carry[:], b)
			return
		}
		b = b[n:]
	}
}

// header acts on the PDU at the start of b and returns how much of it is done
// with: 0 if there is not enough of it yet.
func (c *conn) header(b []byte) int {
	if len(b) < pdu.CommonSize {
		return 0
	}
	shape, err := c.receiver.Check((*pdu.Common)(b))
	if err != nil {
		return c.protocolError(err, b)
	}
	head := shape.Head()
	if len(b) < head {
		return 0
	}
	if shape.HDGST() {
		if err := pdu.VerifyHeader(b, head-pdu.DigestSize); err != nil {
			return c.protocolError(err, b)
		}
	}
	switch shape.Type() {
	case pdu.TypeCapsuleCmd:
		return c.capsule(b, shape)
	case pdu.TypeH2CData:
		return c.h2cData(b, shape)
	}
	return c.rarePDU(b, shape)
}

// capsule takes a command.
func (c *conn) capsule(b []byte, shape pdu.Shape) int {
	r := c.take()
	if r == nil {
		return c.tooMany(b)
	}
	(*pdu.CapsuleCmd)(b).Command(&r.cmd)
	n := int(shape.Data())
	if n == 0 {
		c.command(r, nil)
		return shape.Head()
	}
	begin := shape.PDO()
	end := begin + n
	whole := end
	if shape.DDGST() {
		whole += pdu.DigestSize
	}
	if len(b) < whole {
		c.beginCapsuleData(r, shape)
		return shape.Head()
	}
	data := b[begin:end:end]
	if shape.DDGST() && pdu.GetDigest(b[end:]) != pdu.Digest(data) {
		c.damaged(r)
		return whole
	}
	c.command(r, data)
	return whole
}

// command executes a command whose in-capsule data, if it has any, is there.
func (c *conn) command(r *request, data []byte) {
	if c.qid != 0 && r.cmd.Opcode != nvme.OpFabrics {
		c.ioCommand(r, data)
		return
	}
	c.adminCommand(r, data)
}

// beginCapsuleData prepares for the data of a capsule of which only a part is
// there. A connection needs memory for one such capsule.
func (c *conn) beginCapsuleData(r *request, shape pdu.Shape) {
	if c.cold.capsule == nil {
		c.cold.capsule = make([]byte, max(c.w.t.cfg.Transport.InCapsule, pdu.MinICD))
	}
	n := shape.Data()
	c.in = inbound{
		req: r, to: c.cold.capsule[:n], left: n, total: n,
		pad: uint32(shape.PDO() - shape.Head()), ddgst: shape.DDGST(),
	}
	c.beginData()
}

func (c *conn) beginData() {
	c.mode = rxData
	if c.in.pad > 0 {
		c.mode = rxPad
	}
}

// advance counts data as received.
func (c *conn) advance(b []byte) {
	in := &c.in
	if in.ddgst {
		in.digest = pdu.UpdateDigest(in.digest, b)
	}
	if in.to != nil {
		in.to = in.to[len(b):]
	}
	if in.left -= uint32(len(b)); in.left > 0 {
		return
	}
	if in.ddgst {
		c.mode = rxDigest
		return
	}
	c.mode = rxHeader
	c.endData(true)
}

// digest takes the digest of data that was received in pieces.
func (c *conn) digest(b []byte) int {
	if len(b) < pdu.DigestSize {
		return 0
	}
	c.mode = rxHeader
	c.endData(pdu.GetDigest(b) == c.in.digest)
	return pdu.DigestSize
}

// endData follows the last byte of data and of its digest.
func (c *conn) endData(intact bool) {
	r := c.in.req
	c.in.req, c.in.to = nil, nil
	switch {
	case c.in.h2c:
		c.transferred(r, c.in.slot, c.in.total, intact)
	case intact:
		c.command(r, c.cold.capsule[:c.in.total])
	default:
		c.damaged(r)
	}
}
