package tcptest

import (
	"errors"
	"slices"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Serve plays the controller on a connection, from the handshake on.
func (k *Controller) Serve(c *Conn) {
	c.Chunk, c.Pause, c.AfterChunk = k.Chunk, k.Pause, k.AfterChunk
	p, err := c.Next()
	if err != nil {
		k.stopped(c, &p, err)
		return
	}
	c.icreq = (*pdu.ICReq)(p.Header).Fields()
	c.SendICResp(k.icresp(c.icreq))
	k.ServeCommands(c)
}

func (k *Controller) icresp(req pdu.ICReqFields) pdu.ICRespFields {
	if k.ICResp != nil {
		return k.ICResp(req)
	}
	return pdu.ICRespFields{HDGST: req.HDGST, DDGST: req.DDGST}
}

// ServeCommands is Serve after the handshake.
func (k *Controller) ServeCommands(c *Conn) {
	q := new(queue)
	defer k.leave(c, q)
	for {
		p, err := c.Next()
		if err != nil {
			k.stopped(c, &p, err)
			return
		}
		switch p.Type() {
		case pdu.TypeCapsuleCmd:
			r := newRequest(c, &p)
			r.queue, r.Queue = q, q.id
			q.count()
			k.checkCapsule(r, &p)
			if k.Override == nil || !k.Override(r) {
				k.Answer(r)
			}
		case pdu.TypeH2CTermReq:
			k.terminated(c, &p)
			c.ExpectEnd()
			return
		default:
			c.Fail(errors.New("no R2T asked for this " + p.Type().String()))
		}
	}
}

// stopped ends a connection on which nothing more can be read. A PDU that is
// wrong is told to the host, too.
func (k *Controller) stopped(c *Conn, p *pdu.PDU, err error) {
	if ended(err) {
		return
	}
	var pe *pdu.Error
	if errors.As(err, &pe) && !pe.Silent {
		_, _ = c.Write(pe.AppendTermReq(nil, pdu.Controller, p.Header))
	}
	c.Fail(err)
}

func (k *Controller) terminated(c *Conn, p *pdu.PDU) {
	e := (*pdu.TermReq)(p.Header).Err(p.Data)
	signal := k.termSignal()
	k.mu.Lock()
	if len(k.terms) < maxTermReqs {
		k.terms = append(k.terms, &termReq{e, c.index})
	}
	k.mu.Unlock()
	select {
	case signal <- struct{}{}:
	default:
	}
}

// leave forgets a queue and what was outstanding on it.
func (k *Controller) leave(c *Conn, q *queue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queues[q.id] == q {
		delete(k.queues, q.id)
	}
	k.aers = slices.DeleteFunc(k.aers, func(r *Request) bool { return r.Conn == c })
}

// checkCapsule ends the connection if there is more in-capsule data than the
// queue takes, or not what the command says.
func (k *Controller) checkCapsule(r *Request, p *pdu.PDU) {
	limit := pdu.MinICD
	if r.Queue != 0 && r.Cmd.Opcode != nvme.OpFabrics {
		limit = k.inCapsule()
	}
	d := r.Cmd.SGL()
	inCapsule := d.Is(nvme.SGLTypeDataBlock, nvme.SGLSubtypeOffset)
	var err *pdu.Error
	switch n := len(r.Data); {
	case n > limit:
		err = pdu.NewError(pdu.TypeCapsuleCmd, pdu.FESDataLimitExceeded, 0, "PLEN", uint64(p.Common().PLEN()), "too much in-capsule data")
	case inCapsule && (d.Address != 0 || n != int(d.Length)) || !inCapsule && n != 0:
		err = pdu.NewError(pdu.TypeCapsuleCmd, pdu.FESInvalidHeaderField, 32, "SGL1", uint64(d.Length), "does not describe the in-capsule data")
	default:
		return
	}
	_, _ = r.Conn.Write(err.AppendTermReq(nil, pdu.Controller, p.Header))
	r.Conn.Fail(err)
}

// Answer answers a command as the controller does when nothing overrides it.
func (k *Controller) Answer(r *Request) {
	connected := r.queue != nil && r.queue.size != 0
	switch {
	case r.Cmd.Opcode == nvme.OpFabrics:
		k.fabrics(r)
	case !connected:
		r.Complete(nvme.StatusCommandSequenceError|nvme.StatusDNR, 0)
	case r.Queue == 0:
		k.admin(r)
	default:
		k.io(r)
	}
}

// reply sends the data of a command that reads, cut to what the host has room
// for, and the response.
func (k *Controller) reply(r *Request, b []byte, result uint64) {
	b = b[:min(len(b), int(r.Len()))]
	if len(b) == 0 {
		r.Complete(nvme.StatusSuccess, result)
		return
	}
	if k.Success && r.queue.off && result == 0 {
		r.SendSuccess(b, k.C2HData)
		return
	}
	pdus := r.data(b, k.C2HData, pdu.LastPDU)
	r.send(append(pdus, r.Response(nvme.StatusSuccess, result))...)
}

// receive returns the data of a command that writes.
func (k *Controller) receive(r *Request) []byte {
	window := max(k.R2Ts, 1)
	if host := r.Conn.icreq.MAXR2T; host < uint32(window) {
		window = int(host) + 1
	}
	return r.Receive(k.R2TLength, window)
}
