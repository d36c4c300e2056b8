package tcptest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Write sends bytes as they are, cut as Chunk says. It makes Conn an
// io.Writer; scripts use Send.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(b, c.Chunk)
}

func (c *Conn) write(b []byte, chunk int) (int, error) {
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.Timeout))
	if chunk <= 0 {
		chunk = max(len(b), 1)
	}
	sent := 0
	for sent < len(b) {
		n, err := c.nc.Write(b[sent:min(sent+chunk, len(b))])
		sent += n
		if err != nil {
			return sent, err
		}
		c.between()
	}
	return sent, nil
}

func (c *Conn) between() {
	if c.Pause > 0 {
		time.Sleep(c.Pause)
	}
	if c.AfterChunk != nil {
		c.AfterChunk()
	}
}

// Send sends PDUs, or any bytes, together.
func (c *Conn) Send(pdus ...[]byte) {
	if c.tb != nil {
		c.tb.Helper()
	}
	if _, err := c.Write(bytes.Join(pdus, nil)); err != nil {
		c.Fail(fmt.Errorf("send: %w", err))
	}
}

// SendSplit sends b in pieces that end before the given offsets, which must
// ascend, and at its end.
func (c *Conn) SendSplit(b []byte, offsets ...int) {
	if c.tb != nil {
		c.tb.Helper()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	from := 0
	for _, to := range append(offsets[:len(offsets):len(offsets)], len(b)) {
		to = min(to, len(b))
		if to <= from {
			continue
		}
		if _, err := c.write(b[from:to], 0); err != nil {
			c.Fail(fmt.Errorf("send: %w", err))
		}
		from = to
	}
}

// Dribble sends b one byte at a time.
func (c *Conn) Dribble(b []byte) {
	if c.tb != nil {
		c.tb.Helper()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.write(b, 1); err != nil {
		c.Fail(fmt.Errorf("send: %w", err))
	}
}

// The methods below build whole PDUs to the parameters of the connection, with
// digests where those have them, for Send.

// CapsuleResp builds a response capsule.
func (c *Conn) CapsuleResp(cpl *nvme.Completion) []byte {
	l := c.params.Layout(pdu.TypeCapsuleResp)
	return pdu.AppendCapsuleResp(nil, &l, cpl)
}

// C2HData builds a C2HData with the data b at offset off of the data of
// command cid. flags is any of pdu.LastPDU and pdu.Success.
func (c *Conn) C2HData(flags pdu.Flags, cid uint16, off uint32, b []byte) []byte {
	l := c.params.Layout(pdu.TypeC2HData)
	return pdu.AppendC2HData(nil, &l, flags, pdu.C2HDataFields{CCCID: cid, DATAO: off}, b)
}

// R2T builds an R2T for n bytes at offset off of the data of command cid.
func (c *Conn) R2T(cid, ttag uint16, off, n uint32) []byte {
	l := c.params.Layout(pdu.TypeR2T)
	return pdu.AppendR2T(nil, &l, pdu.R2TFields{CCCID: cid, TTAG: ttag, R2TO: off, R2TL: n})
}

// TermReq builds a C2HTermReq about a PDU with the given header.
func TermReq(fes pdu.FES, fei uint32, header []byte) []byte {
	return pdu.AppendTermReq(nil, pdu.Controller, pdu.TermReqFields{FES: fes, FEI: fei}, header)
}

// CorruptHeaderDigest returns a copy of the PDU b whose header digest is
// wrong. It must have one.
func CorruptHeaderDigest(b []byte) []byte {
	b = bytes.Clone(b)
	b[(*pdu.Common)(b).HLEN()] ^= 0x01
	return b
}

// CorruptDataDigest returns a copy of the PDU b whose data digest is wrong. It
// must have one.
func CorruptDataDigest(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-1] ^= 0x80
	return b
}

// CorruptData returns a copy of the PDU b with one bit of its data turned, and
// its digests as they were.
func CorruptData(b []byte) []byte {
	b = bytes.Clone(b)
	b[(*pdu.Common)(b).PDO()] ^= 0x10
	return b
}
