//qpoll:hot

package tcp

import (
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

const (
	txEnough  = 2 << 20 // bytes queued beyond which R2Ts wait
	copyBelow = 1 << 10 // payloads shorter than this are copied next to their header
)

// Submit implements nvme.QueueTransport.
func (c *conn) Submit(r *nvme.Request) {
	i := r.Index()
	s := &c.slots[i]
	// The tracker may still have its turn among r2ts, of a command that ended
	// before it came. It has one turn at a time.
	*s = slot{queued: s.queued}
	if c.backlog.n == 0 && c.encode(r, s, i) {
		return
	}
	c.backlog.push(i)
}

// encode queues the capsule of a command, or returns false if there is no
// room now.
func (c *conn) encode(r *nvme.Request, s *slot, i int) bool {
	d := &r.Data
	n := d.Len
	inCapsule := uint32(0)
	if d.Dir == nvme.DirOut && n != 0 && (n <= c.out.icd || r.Cmd.Opcode == nvme.OpFabrics) {
		inCapsule = n
	}
	room := pdu.MaxPDO + pdu.DigestSize
	if inCapsule < copyBelow {
		room += int(inCapsule)
	}
	b := c.tx.reserve(room)
	if b == nil {
		return false
	}
	r.Cmd.Flags = r.Cmd.Flags&^nvme.FlagPSDTMask | nvme.FlagSGL
	switch {
	case inCapsule != 0:
		r.Cmd.DPTR = nvme.SGLInCapsule(0, n).DPTR()
		s.wanted = n
	default:
		r.Cmd.DPTR = nvme.SGLTransport(n).DPTR()
	}
	(*pdu.CapsuleCmd)(b).Encode(&c.out.capsule, &r.Cmd, inCapsule)
	used := c.out.capsule.Finish(b, inCapsule != 0)
	s.sent = true
	if inCapsule == 0 {
		c.tx.commit(used)
		return true
	}
	c.attach(b, used, d, 0, inCapsule, &c.out.capsule, s, i)
	return true
}

// attach queues used bytes of header in b and n bytes of d from off on, with
// their digest: copied if short, by reference if not. b has room for either.
func (c *conn) attach(b []byte, used int, d *nvme.Data, off, n uint32, l *pdu.Layout, s *slot, i int) {
	if n < copyBelow {
		at := b[used : used+int(n)]
		gather(at, d, off)
		used += int(n)
		if l.DDGST() {
			pdu.PutDigest(b[used:], pdu.Digest(at))
			used += pdu.DigestSize
		}
		c.tx.commit(used)
		return
	}
	c.tx.commit(used)
	var crc uint32
	if d.Vec == nil {
		p := d.Buf[off : off+n]
		c.tx.payload(p, i)
		s.refs++
		if l.DDGST() {
			crc = pdu.Digest(p)
		}
	} else {
		crc = c.attachVec(d, off, n, l.DDGST(), s, i)
	}
	if l.DDGST() {
		// The room for it is what reserve gave beyond the header.
		b = c.tx.mem[c.tx.write : c.tx.write+pdu.DigestSize]
		pdu.PutDigest(b, crc)
		c.tx.commit(pdu.DigestSize)
	}
}

func (c *conn) attachVec(d *nvme.Data, off, n uint32, digest bool, s *slot, i int) (crc uint32) {
	skip := d.Off + int(off)
	for _, p := range d.Vec {
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		p = p[skip:]
		skip = 0
		if uint32(len(p)) > n {
			p = p[:n]
		}
		c.tx.payload(p, i)
		s.refs++
		if digest {
			crc = pdu.UpdateDigest(crc, p)
		}
		if n -= uint32(len(p)); n == 0 {
			break
		}
	}
	return crc
}

// gather copies len(to) bytes of d from off on.
func gather(to []byte, d *nvme.Data, off uint32) {
	if d.Vec == nil {
		copy(to, d.Buf[off:])
		return
	}
	skip := d.Off + int(off)
	for _, p := range d.Vec {
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		n := copy(to, p[skip:])
		skip = 0
		if to = to[n:]; len(to) == 0 {
			return
		}
	}
}

// fill encodes what waits for room: capsules, then data that was asked for.
func (c *conn) fill() {
	for c.backlog.n > 0 {
		i := c.backlog.front()
		if !c.encode(c.qp.Tracker(i), &c.slots[i], i) {
			return
		}
		c.backlog.pop()
	}
	for c.r2ts.n > 0 && c.tx.bytes < txEnough {
		i := c.r2ts.front()
		s := &c.slots[i]
		for s.r2tCount > 0 {
			if !c.answer(i, s) {
				return
			}
		}
		s.queued = false
		c.r2ts.pop()
	}
}

// answer queues one H2CData for the first R2T of a slot, or returns false if
// there is no room now.
func (c *conn) answer(i int, s *slot) bool {
	if c.tx.bytes >= txEnough {
		return false
	}
	t := &c.out.r2t[i*int(c.out.maxR2T)+int(s.r2tHead)]
	n := min(t.left, c.out.maxH2C)
	room := pdu.MaxPDO + pdu.DigestSize
	if n < copyBelow {
		room += int(n)
	}
	b := c.tx.reserve(room)
	if b == nil {
		return false
	}
	r := c.qp.Tracker(i)
	var flags pdu.Flags
	if n == t.left {
		flags = pdu.LastPDU
	}
	(*pdu.H2CData)(b).Encode(&c.out.data, flags, pdu.H2CDataFields{CCCID: r.Cmd.CID, TTAG: t.ttag, DATAO: t.offset, DATAL: n})
	used := c.out.data.Finish(b, true)
	c.attach(b, used, &r.Data, t.offset, n, &c.out.data, s, i)
	t.offset += n
	if t.left -= n; t.left == 0 {
		s.r2tCount--
		if s.r2tHead++; uint32(s.r2tHead) == c.out.maxR2T {
			s.r2tHead = 0
		}
	}
	return true
}

// flush sends what is queued, with one call.
func (c *conn) flush() int {
	q := &c.tx
	v := q.iov[q.first:]
	var n int
	var err sys.Errno
	c.sends++
	if len(v) == 1 {
		n, err = sys.Send(c.fd, v[0].Bytes())
	} else {
		n, err = sys.Sendmsg(c.fd, v[:min(len(v), sys.MaxIovecs)])
	}
	if err != 0 {
		if err != sys.EAGAIN {
			c.fail(sendError(err))
		}
		return 0
	}
	c.sentBytes(n)
	return 1
}

// sentBytes takes n bytes off the queue and lets go of the memory behind them.
func (c *conn) sentBytes(n int) {
	q := &c.tx
	q.bytes -= n
	done := false
	for n > 0 {
		v := &q.iov[q.first]
		k := min(n, int(v.Len))
		n -= k
		o := q.owner[q.first]
		if o == noSlot {
			q.release(k)
		}
		if k < int(v.Len) {
			v.Set(v.Bytes()[k:])
			break
		}
		if o != noSlot {
			s := &c.slots[o]
			s.refs--
			done = done || s.early && s.refs == 0
		}
		*v = sys.Iovec{}
		q.first++
	}
	if q.first == len(q.iov) {
		q.iov, q.owner, q.first, q.open = q.iov[:0], q.owner[:0], 0, false
	}
	if done {
		c.finishEarly()
	}
}
