//qpoll:hot

package tcp

import (
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

type rxMode uint8

const (
	rxHeader rxMode = iota // the next byte begins a PDU
	rxPad                  // in the padding before data
	rxData                 // in the data of a C2HData
	rxDigest               // in the digest after it
)

// receive takes what the socket has, with one call, and acts on it.
func (c *conn) receive() int {
	if c.mode == rxData && c.in.left >= directFrom && c.head == c.tail {
		return c.receiveDirect()
	}
	if c.head == c.tail {
		c.head, c.tail = 0, 0
	} else if c.head > 0 {
		// Less than a header: what follows a whole one is consumed at once.
		c.tail = copy(c.rx, c.rx[c.head:c.tail])
		c.head = 0
	}
	room := c.rx[c.tail:]
	if c.large && len(room) > afterDirect {
		room = room[:afterDirect]
	}
	c.receives++
	n, err := sys.Recv(c.fd, room)
	if err != 0 {
		if err != sys.EAGAIN {
			c.fail(receiveError(err))
		}
		return 0
	}
	if n == 0 {
		c.fail(errPeerClosed)
		return 0
	}
	c.received += uint64(n)
	c.tail += n
	c.large = c.large && n < len(room) // much came that is not large
	c.parse()
	return 1
}

// parse acts on what is in the staging memory.
func (c *conn) parse() {
	for c.head < c.tail {
		ok := false
		switch c.mode {
		case rxHeader:
			ok = c.parseHeader()
		case rxPad:
			n := min(c.in.pad, c.tail-c.head)
			c.head += n
			if c.in.pad -= n; c.in.pad == 0 {
				c.mode = rxData
			}
			ok = true
		case rxData:
			c.takeData(c.rx[c.head:c.tail])
			ok = true
		case rxDigest:
			ok = c.parseDigest()
		}
		if !ok {
			return
		}
	}
}

// parseHeader acts on the header at c.head. It returns false if there is none
// yet, or the connection failed.
func (c *conn) parseHeader() bool {
	b := c.rx[c.head:c.tail]
	if len(b) < pdu.CommonSize {
		return false
	}
	shape, err := c.receiver.Check((*pdu.Common)(b))
	if err != nil {
		c.protocolError(err, b)
		return false
	}
	if len(b) < shape.Head() {
		return false
	}
	if shape.HDGST() {
		if err := pdu.VerifyHeader(b, shape.Head()-pdu.DigestSize); err != nil {
			c.protocolError(err, b)
			return false
		}
	}
	switch shape.Type() {
	case pdu.TypeC2HData:
		return c.startData((*pdu.C2HData)(b), shape)
	case pdu.TypeCapsuleResp:
		return c.response((*pdu.CapsuleResp)(b), shape)
	case pdu.TypeR2T:
		return c.request((*pdu.R2T)(b), shape)
	}
	return c.rarePDU(b, shape)
}

// response takes a response capsule.
func (c *conn) response(h *pdu.CapsuleResp, shape pdu.Shape) bool {
	h.Completion(&c.cpl)
	r := c.qp.Find(c.cpl.CID)
	if r == nil || !c.slots[r.Index()].sent {
		c.badCommand(h[:], pdu.TypeCapsuleResp, 20, c.cpl.CID)
		return false
	}
	s := &c.slots[r.Index()]
	if c.cpl.Status().OK() && r.Data.Len != 0 && !c.whole(r, s) {
		c.protocolError(incomplete(r, s), h[:])
		return false
	}
	c.head += shape.Head()
	c.complete(r, s)
	return c.state >= connFabrics
}

// whole reports whether a command that succeeded has moved all of its data. A
// read that brought less would leave stale bytes behind; a write that took
// less, or some of whose data is still here, was not written.
func (c *conn) whole(r *nvme.Request, s *slot) bool {
	if r.Data.Dir == nvme.DirIn {
		return s.got == r.Data.Len || c.lenient(r)
	}
	return s.wanted == r.Data.Len && s.r2tCount == 0 && s.refs == 0 || c.lenient(r)
}

// complete finishes the command that c.cpl is about.
func (c *conn) complete(r *nvme.Request, s *slot) {
	s.r2tCount = 0
	if s.damaged {
		c.cpl.StatusPhase = uint16(nvme.StatusTransientTransportError) << 1
	}
	if s.refs > 0 {
		// Its memory is still in the send queue. The controller did not need
		// it, but the stream does. Nothing more may come for it.
		s.early, s.sent, s.status = true, false, c.cpl
		return
	}
	c.qp.Complete(r, &c.cpl)
}

// startData begins to receive the data of a C2HData.
func (c *conn) startData(h *pdu.C2HData, shape pdu.Shape) bool {
	if err := h.Check(shape); err != nil {
		c.protocolError(err, h[:])
		return false
	}
	r := c.qp.Find(h.CCCID())
	if r == nil || r.Data.Dir != nvme.DirIn || !c.slots[r.Index()].sent {
		c.badCommand(h[:], pdu.TypeC2HData, pdu.OffCCCID, h.CCCID())
		return false
	}
	s := &c.slots[r.Index()]
	off, n := h.DATAO(), h.DATAL()
	if s.last {
		c.protocolError(dataAfterLast(off), h[:])
		return false
	}
	if off != s.got || n > r.Data.Len-off {
		c.protocolError(dataRange(off, n, s.got, r.Data.Len), h[:])
		return false
	}
	flags := shape.Flags()
	ok := flags&pdu.Success != 0
	if ok && (c.cold.flowControl || off+n != r.Data.Len && !c.lenient(r)) {
		c.protocolError(badSuccess(c.cold.flowControl), h[:])
		return false
	}
	in := &c.in
	in.req, in.slot, in.left = r, s, n
	in.ok, in.ddgst, in.digest = ok, shape.DDGST(), 0
	s.last = flags&pdu.LastPDU != 0
	c.large = n >= directFrom
	if r.Data.Vec != nil {
		c.seek(off)
	}
	in.pad = shape.PDO() - shape.Head()
	c.head += shape.Head()
	if in.pad > 0 {
		c.mode = rxPad
	} else {
		c.mode = rxData
	}
	return true
}

// takeData copies data out of the staging memory.
func (c *conn) takeData(b []byte) {
	in := &c.in
	if uint32(len(b)) > in.left {
		b = b[:in.left]
	}
	if in.req.Data.Vec == nil {
		copy(in.req.Data.Buf[in.slot.got:], b)
	} else {
		c.scatter(b)
	}
	if in.ddgst {
		in.digest = pdu.UpdateDigest(in.digest, b)
	}
	c.head += len(b)
	c.advance(uint32(len(b)))
}

// advance counts n bytes of data as received.
func (c *conn) advance(n uint32) {
	in := &c.in
	in.slot.got += n
	if in.left -= n; in.left > 0 {
		return
	}
	if in.ddgst {
		c.mode = rxDigest
		return
	}
	c.mode = rxHeader
	c.endData()
}

// endData follows the last byte of a C2HData and of its digest.
func (c *conn) endData() {
	in := &c.in
	r, s := in.req, in.slot
	in.req, in.slot = nil, nil
	if in.ok {
		c.cpl = nvme.Completion{CID: r.Cmd.CID, SQID: c.qp.ID()}
		c.complete(r, s)
	}
}

func (c *conn) parseDigest() bool {
	b := c.rx[c.head:c.tail]
	if len(b) < pdu.DigestSize {
		return false
	}
	c.head += pdu.DigestSize
	c.mode = rxHeader
	if pdu.GetDigest(b) != c.in.digest {
		c.dataDigestError()
	}
	c.endData()
	return c.state >= connFabrics
}

// request takes an R2T.
func (c *conn) request(h *pdu.R2T, shape pdu.Shape) bool {
	if err := h.Check(); err != nil {
		c.protocolError(err, h[:])
		return false
	}
	r := c.qp.Find(h.CCCID())
	if r == nil || r.Data.Dir != nvme.DirOut || !c.slots[r.Index()].sent {
		c.badCommand(h[:], pdu.TypeR2T, pdu.OffCCCID, h.CCCID())
		return false
	}
	i := r.Index()
	s := &c.slots[i]
	off, n := h.R2TO(), h.R2TL()
	if off != s.wanted || n > r.Data.Len-off {
		c.protocolError(r2tRange(off, n, s.wanted, r.Data.Len), h[:])
		return false
	}
	if uint32(s.r2tCount) == c.out.maxR2T {
		c.protocolError(tooManyR2T(c.out.maxR2T), h[:])
		return false
	}
	c.head += shape.Head()
	s.wanted = off + n
	at := uint32(s.r2tHead) + uint32(s.r2tCount)
	if at >= c.out.maxR2T {
		at -= c.out.maxR2T
	}
	c.out.r2t[i*int(c.out.maxR2T)+int(at)] = r2t{ttag: h.TTAG(), offset: off, left: n}
	s.r2tCount++
	if !s.queued {
		s.queued = true
		c.r2ts.push(i)
	}
	return true
}
