//qpoll:hot

package tcp

import (
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// directFrom is how much data must be to come for it to be received straight
// into the user's buffer, past the staging memory.
const directFrom = 16 << 10

// afterDirect is how much is received into the staging memory behind such data:
// what fits the headers between two transfers, and not the next transfer, which
// would then be copied twice.
const afterDirect = 4 << 10

// seek puts the cursor of a vectored read to byte off of its data.
func (c *conn) seek(off uint32) {
	d := &c.in.req.Data
	skip := d.Off + int(off)
	for i, p := range d.Vec {
		if skip < len(p) {
			c.in.vec, c.in.vecOff = i, skip
			return
		}
		skip -= len(p)
	}
	c.in.vec, c.in.vecOff = len(d.Vec), 0
}

// scatter copies b to where the cursor of a vectored read is.
func (c *conn) scatter(b []byte) {
	in := &c.in
	for len(b) > 0 {
		p := in.req.Data.Vec[in.vec][in.vecOff:]
		n := copy(p, b)
		b = b[n:]
		if in.vecOff += n; n == len(p) {
			in.vec, in.vecOff = in.vec+1, 0
		}
	}
}

// receiveDirect receives into the user's buffer, and what follows into the
// staging memory, with one call.
func (c *conn) receiveDirect() int {
	in := &c.in
	iov := c.cold.iov[:0]
	left := in.left
	if in.req.Data.Vec == nil {
		got := in.slot.got
		iov = appendIovec(iov, in.req.Data.Buf[got:got+left])
	} else {
		off := in.vecOff
		for i := in.vec; left > 0 && len(iov) < cap(iov)-1; i++ {
			p := in.req.Data.Vec[i][off:]
			off = 0
			if len(p) == 0 {
				continue
			}
			p = p[:min(uint32(len(p)), left)]
			left -= uint32(len(p))
			iov = appendIovec(iov, p)
		}
		left = in.left - left
	}
	c.head, c.tail = 0, 0
	if left == in.left { // all of it fits: go on into the staging memory
		iov = appendIovec(iov, c.rx[:min(afterDirect, len(c.rx))])
	}
	c.receives++
	n, err := sys.Readv(c.fd, iov)
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
	direct := min(uint32(n), left)
	c.tail = n - int(direct)
	c.landed(direct)
	c.parse()
	return 1
}

// landed accounts for n bytes of data that were received in place.
func (c *conn) landed(n uint32) {
	in := &c.in
	if in.req.Data.Vec == nil {
		if in.ddgst {
			in.digest = pdu.UpdateDigest(in.digest, in.req.Data.Buf[in.slot.got:in.slot.got+n])
		}
		c.advance(n)
		return
	}
	for k := n; k > 0; {
		p := in.req.Data.Vec[in.vec][in.vecOff:]
		p = p[:min(uint32(len(p)), k)]
		if in.ddgst {
			in.digest = pdu.UpdateDigest(in.digest, p)
		}
		k -= uint32(len(p))
		if in.vecOff += len(p); in.vecOff == len(in.req.Data.Vec[in.vec]) {
			in.vec, in.vecOff = in.vec+1, 0
		}
	}
	c.advance(n)
}

func appendIovec(iov []sys.Iovec, b []byte) []sys.Iovec {
	var v sys.Iovec
	v.Set(b)
	return append(iov, v)
}
