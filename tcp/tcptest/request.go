package tcptest

import (
	"bytes"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Request is a command that arrived, and how to answer it. All methods but
// Receive may be called from any goroutine, and late; what cannot be sent any
// more because the connection has ended is dropped.
type Request struct {
	Conn  *Conn
	Queue uint16 // identifier of the queue that the command came on, where a Controller plays
	Cmd   nvme.Command
	Data  []byte // in-capsule data

	queue *queue // nil unless a Controller plays
}

func newRequest(c *Conn, p *pdu.PDU) *Request {
	return &Request{Conn: c, Cmd: Command(p), Data: p.Data}
}

// Len returns the length of the command's data in bytes, from its SGL
// descriptor.
func (r *Request) Len() uint32 {
	if d := r.Cmd.SGL(); d.Is(nvme.SGLTypeDataBlock, nvme.SGLSubtypeOffset) || d.Is(nvme.SGLTypeTransportDataBlock, nvme.SGLSubtypeTransport) {
		return d.Length
	}
	return 0
}

// Complete sends the response capsule with a status and a result.
func (r *Request) Complete(st nvme.Status, result uint64) {
	r.send(r.Response(st, result))
}

func (r *Request) send(pdus ...[]byte) {
	if _, err := r.Conn.Write(bytes.Join(pdus, nil)); err != nil && !ended(err) {
		r.Conn.Fail(fmt.Errorf("send: %w", err))
	}
}

// Response builds what Complete sends.
func (r *Request) Response(st nvme.Status, result uint64) []byte {
	cpl := nvme.Completion{CID: r.Cmd.CID, Result: result, StatusPhase: uint16(st) << 1}
	if r.queue != nil {
		cpl.SQHead = r.queue.head()
	}
	return r.Conn.CapsuleResp(&cpl)
}

// SendData sends b as the command's data, in PDUs of at most pieceLen bytes (0:
// one PDU), the last of them with LAST_PDU. The response is not sent with it.
func (r *Request) SendData(b []byte, pieceLen int) {
	r.send(r.data(b, pieceLen, pdu.LastPDU)...)
}

// SendSuccess is SendData with SUCCESS in the last PDU, which stands for the
// response. That is only allowed without submission queue flow control.
func (r *Request) SendSuccess(b []byte, pieceLen int) {
	r.send(r.data(b, pieceLen, pdu.LastPDU|pdu.Success)...)
}

func (r *Request) data(b []byte, pieceLen int, last pdu.Flags) (pdus [][]byte) {
	if pieceLen <= 0 {
		pieceLen = len(b)
	}
	for off := 0; off < len(b); off += pieceLen {
		end := min(off+pieceLen, len(b))
		var flags pdu.Flags
		if end == len(b) {
			flags = last
		}
		pdus = append(pdus, r.Conn.C2HData(flags, r.Cmd.CID, uint32(off), b[off:end]))
	}
	return pdus
}

// Receive returns the data of a command that brings some: what came in the
// capsule, or else what the host sends when it is asked by R2Ts of pieceLen
// bytes each (0: all at once), of which window are outstanding at a time. PDUs
// that belong to other commands are set aside for Conn.Next.
func (r *Request) Receive(pieceLen uint32, window int) []byte {
	n := r.Len()
	if n == 0 || r.Cmd.SGL().Type() == nvme.SGLTypeDataBlock {
		return r.Data
	}
	if pieceLen == 0 {
		pieceLen = n
	}
	buf := make([]byte, n)
	var asked, got uint32
	ttag := r.Cmd.CID ^ 0x5a00 // any value will do
	for got < n {
		var pdus [][]byte
		for asked < n && asked-got < uint32(max(window, 1))*pieceLen {
			k := min(pieceLen, n-asked)
			pdus = append(pdus, r.Conn.R2T(r.Cmd.CID, ttag+uint16(asked/pieceLen), asked, k))
			asked += k
		}
		r.send(pdus...)
		end := min((got/pieceLen+1)*pieceLen, n)
		r.receiveRange(buf, got, end, ttag+uint16(got/pieceLen))
		got = end
	}
	return buf
}

// receiveRange reads the answer to one R2T, for buf[from:to].
func (r *Request) receiveRange(buf []byte, from, to uint32, ttag uint16) {
	c := r.Conn
	for from < to {
		p, err := c.read()
		if err != nil {
			c.Fail(fmt.Errorf("waiting for H2CData: %w", err))
		}
		if p.Type() != pdu.TypeH2CData {
			if len(c.aside) == maxAside {
				c.Fail(fmt.Errorf("more than %d PDUs while waiting for H2CData", maxAside))
			}
			c.aside = append(c.aside, p)
			if p.Type() == pdu.TypeH2CTermReq {
				c.Fail((*pdu.TermReq)(p.Header).Err(p.Data))
			}
			continue
		}
		n := uint32(len(p.Data))
		check := H2C(r.Cmd.CID, ttag, from, min(n, to-from), from+n == to)
		if err := check(&p); err != nil {
			c.Fail(fmt.Errorf("H2CData: %w", err))
		}
		from += uint32(copy(buf[from:to], p.Data))
	}
}
