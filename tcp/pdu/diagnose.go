package pdu

import (
	"encoding/binary"
	"strconv"
)

// checkSlow handles what Check does not decide: data that lies further back
// than it needs to, which is allowed, and every kind of error, of which the
// first in the order of the fields counts.
func (r *Receiver) checkSlow(h *Common) (Shape, error) {
	t := h.Type()
	if err := r.checkType(t); err != nil {
		return Shape{}, err
	}
	if t.isTermReq() {
		return Shape{}, termReqError(h)
	}
	hlen := uint32(t.HeaderLen())
	head := hlen
	if t.hasDigests() && r.params.HDGST {
		head += DigestSize
	}
	takesData := t == TypeCapsuleCmd || t == TypeH2CData || t == TypeC2HData
	data := takesData && h.PLEN() > head
	if err := r.checkFlags(h, takesData, data); err != nil {
		return Shape{}, err
	}
	if uint32(h.HLEN()) != hlen {
		return Shape{}, invalid(t, offHLEN, "HLEN", uint64(h.HLEN()), "not "+strconv.Itoa(int(hlen)))
	}
	if data {
		return r.checkData(h, head)
	}
	if h.PLEN() != head {
		return Shape{}, invalid(t, offPLEN, "PLEN", uint64(h.PLEN()), "not "+strconv.Itoa(int(head)))
	}
	return Shape{}, invalid(t, offPLEN, "PLEN", uint64(h.PLEN()), "no data")
}

// checkType tells a type that this end never receives from one that does not
// fit the state of the connection.
func (r *Receiver) checkType(t Type) error {
	if !t.Known() {
		return invalid(t, offType, "PDU-Type", uint64(t), "undefined")
	}
	if t.Receiver() != r.end {
		return invalid(t, offType, "PDU-Type", uint64(t), "received by the "+r.end.String())
	}
	connecting := t == TypeICReq || t == TypeICResp
	if !t.isTermReq() && connecting != (r.phase == phaseConnecting) {
		reason := "after the connection was initialized"
		if r.phase == phaseConnecting {
			reason = "before the connection was initialized"
		}
		return NewError(t, FESSequenceError, 0, "PDU-Type", uint64(t), reason)
	}
	return nil
}

// termReqError tells what is wrong with a TermReq that Check did not take. A
// malformed TermReq is never answered.
func termReqError(h *Common) error {
	e := invalid(h.Type(), offPLEN, "PLEN", uint64(h.PLEN()), "not 24 to 152")
	if h.HLEN() != TermReqSize {
		e = invalid(h.Type(), offHLEN, "HLEN", uint64(h.HLEN()), "not 24")
	}
	e.Silent = true
	return e
}

func (r *Receiver) checkFlags(h *Common, takesData, data bool) error {
	t, f := h.Type(), h.Flags()
	bad := func(reason string) error { return invalid(t, offFlags, "FLAGS", uint64(f), reason) }
	if !t.hasDigests() {
		return nil
	}
	switch hdgst := f&HDGSTF != 0; {
	case hdgst && !r.params.HDGST:
		return bad("header digest not negotiated")
	case !hdgst && r.params.HDGST:
		return bad("header digest missing")
	}
	if !takesData {
		return nil
	}
	switch ddgst := f&DDGSTF != 0; {
	case ddgst && !r.params.DDGST:
		return bad("data digest not negotiated")
	case !ddgst && data && r.params.DDGST:
		return bad("data digest missing")
	}
	if t == TypeC2HData && f&(LastPDU|Success) == Success {
		return bad("SUCCESS without LAST_PDU")
	}
	return nil
}

// checkData checks PDO and PLEN of a PDU that is longer than its header, which
// ends, with its digest, at head.
func (r *Receiver) checkData(h *Common, head uint32) (Shape, error) {
	t := h.Type()
	ru := &r.rules[t&15]
	pdo, plen := uint32(h.PDO()), h.PLEN()
	badPDO := func(reason string) (Shape, error) {
		return Shape{}, invalid(t, offPDO, "PDO", uint64(pdo), reason)
	}
	switch {
	case pdo < head:
		return badPDO("inside of the header")
	case pdo%ru.align != 0:
		return badPDO("not a multiple of " + strconv.Itoa(int(ru.align)))
	case pdo > MaxPDO:
		return badPDO("above " + strconv.Itoa(MaxPDO))
	}
	over := pdo
	if r.params.DDGST {
		over += DigestSize
	}
	if plen <= over {
		return Shape{}, invalid(t, offPLEN, "PLEN", uint64(plen), "no room for data")
	}
	if n := plen - over; n > ru.limit {
		return Shape{}, limitError(t, plen, n, ru.limit)
	}
	return Shape{binary.LittleEndian.Uint32(h[:])&ru.dataKeep | place(ru.head, pdo), plen - over}, nil
}

// limitError tells that a PDU carries n bytes, more than limit.
func limitError(t Type, plen, n, limit uint32) error {
	reason := strconv.FormatUint(uint64(n), 10) + " bytes of data, limit " + strconv.FormatUint(uint64(limit), 10)
	switch t {
	case TypeH2CData:
		return NewError(t, FESDataLimitExceeded, 0, "PLEN", uint64(plen), reason)
	case TypeC2HData:
		return NewError(t, FESDataOutOfRange, 0, "PLEN", uint64(plen), reason)
	}
	return invalid(t, offPLEN, "PLEN", uint64(plen), reason)
}
