package target

import (
	"fmt"

	"github.com/qpoll/qpoll/tcp/pdu"
)

// rarePDU takes the PDUs that do not come with every command.
func (c *conn) rarePDU(b []byte, shape pdu.Shape) int {
	switch shape.Type() {
	case pdu.TypeICReq:
		return c.icReq(b)
	case pdu.TypeH2CTermReq:
		n := pdu.TermReqSize + int(shape.Data())
		if len(b) < n {
			return 0
		}
		c.close((*pdu.TermReq)(b).Err(b[pdu.TermReqSize:n]))
		return len(b)
	}
	return c.protocolError(pdu.NewError(shape.Type(), pdu.FESSequenceError, 0, "", 0, "not expected"), b)
}

// icReq answers an ICReq.
func (c *conn) icReq(b []byte) int {
	h := (*pdu.ICReq)(b)
	if err := h.Check(); err != nil {
		return c.protocolError(err, b)
	}
	tr := &c.w.t.cfg.Transport
	req := h.Fields()
	for _, d := range [...]struct {
		policy Digest
		asked  bool
		name   string
	}{{tr.HeaderDigest, req.HDGST, "HDGST_ENABLE"}, {tr.DataDigest, req.DDGST, "DDGST_ENABLE"}} {
		if d.policy == DigestRequired && !d.asked {
			return c.protocolError(pdu.NewError(pdu.TypeICReq, pdu.FESUnsupportedParameter, icReqDigestOffset, d.name, 0, "required"), b)
		}
	}
	resp := pdu.ICRespFields{
		CPDA:       tr.CPDA,
		HDGST:      req.HDGST && tr.HeaderDigest != DigestDeclined,
		DDGST:      req.DDGST && tr.DataDigest != DigestDeclined,
		MAXH2CDATA: tr.MaxH2CData,
	}
	out := c.tx.reserve(headerRoom)
	if out == nil {
		c.close(errTooMany)
		return len(b)
	}
	(*pdu.ICResp)(out).Encode(resp)
	c.tx.commit(pdu.ICRespSize)
	c.w.queueSend(c)
	c.initialised((*pdu.ICResp)(out).Params(req), req)
	return pdu.ICReqSize
}

// icReqDigestOffset is where the digest bits are in an ICReq, for FEI.
const icReqDigestOffset = 11

// initialised prepares for what follows the handshake.
func (c *conn) initialised(p pdu.Params, req pdu.ICReqFields) {
	tr := &c.w.t.cfg.Transport
	icd := uint32(tr.InCapsule)
	c.receiver = pdu.NewReceiver(pdu.Controller, p, pdu.Limits{MaxICD: max(icd, pdu.MinICD)})
	c.out = outbound{
		resp:  p.Layout(pdu.TypeCapsuleResp),
		data:  p.Layout(pdu.TypeC2HData),
		r2t:   p.Layout(pdu.TypeR2T),
		ddgst: p.DDGST,

		maxC2H:      tr.MaxC2HData,
		r2tLength:   tr.R2TLength,
		maxR2T:      1,
		maxTransfer: defaultMaxTransfer,
		icd:         icd,
	}
	c.cold.maxR2T = uint32(min(uint64(req.MAXR2T)+1, uint64(tr.MaxR2T)))
	c.out.transfers = make([]transfer, len(c.requests))
	c.state = connFabrics
}

// tooMany terminates a connection whose host has more commands outstanding
// than its queue has entries.
func (c *conn) tooMany(b []byte) int {
	return c.protocolError(pdu.NewError(pdu.TypeCapsuleCmd, pdu.FESSequenceError, 0, "", 0,
		fmt.Sprintf("more than %d commands outstanding", len(c.requests))), b)
}

// badTransfer terminates a connection because of an H2CData that belongs to no
// R2T.
func (c *conn) badTransfer(h *pdu.H2CData, off uint32) int {
	name, v := "TTAG", h.TTAG()
	if off == pdu.OffCCCID {
		name, v = "CCCID", h.CCCID()
	}
	return c.protocolError(pdu.NewError(pdu.TypeH2CData, pdu.FESInvalidHeaderField, off, name, uint64(v), "no such R2T is outstanding"), h[:])
}

// badOffset terminates a connection because of an H2CData with other data than
// what comes next.
func (c *conn) badOffset(h *pdu.H2CData, t *transfer) int {
	off, n := uint64(h.DATAO()), uint64(h.DATAL())
	fes := pdu.FESDataOutOfRange
	if off >= uint64(t.begin) && off+n <= uint64(t.next)+uint64(t.left) {
		fes = pdu.FESSequenceError // asked for, but not its turn
	}
	return c.protocolError(pdu.NewError(pdu.TypeH2CData, fes, 0, "DATAO", off,
		fmt.Sprintf("with %d bytes of data, the next are %d bytes at %d", n, t.left, t.next)), h[:])
}

// badLast terminates a connection because LAST_PDU is wrong.
func (c *conn) badLast(h *pdu.H2CData, last bool) int {
	why := "missing with the last data of an R2T"
	if last {
		why = "before the last data of an R2T"
	}
	return c.protocolError(pdu.NewError(pdu.TypeH2CData, pdu.FESInvalidHeaderField, flagsOffset, "LAST_PDU", 0, why), h[:])
}

// flagsOffset is where the flags are in a PDU, for FEI.
const flagsOffset = 1
