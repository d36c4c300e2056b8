package pdu

import "encoding/binary"

// Shape is where the parts of one PDU lie, as its common header tells. Only
// Receiver.Check makes one, so the lengths can be relied on.
type Shape struct {
	Type  Type
	Flags Flags  // as received
	Head  uint8  // length of the header and its digest, bytes
	PDO   uint8  // offset of the data, bytes; 0 if there is none
	DDGST bool   // a data digest follows the data
	Data  uint32 // length of the data, bytes
}

// Limits are what a receiver puts up with beyond the specification's own
// bounds. The zero value takes no in-capsule data beyond MinICD, and C2HData of
// any length.
type Limits struct {
	// MaxICD is the most in-capsule data that the controller takes, bytes. 0
	// means MinICD.
	MaxICD uint32
	// MaxC2HData is the most data in one C2HData that the host takes, bytes:
	// the largest transfer that it asks for. 0 means no bound but PLEN's.
	MaxC2HData uint32
}

// MinICD is the in-capsule data in bytes that a controller takes at least on
// the admin queue, and for fabrics commands on any.
const MinICD = 8192

// Receiver checks the common headers that arrive at one end of a connection.
// It is read-only once made.
type Receiver struct {
	rules  [16]rule
	params Params
	end    End
	phase  phase
}

type phase uint8

const (
	phaseConnecting phase = iota
	phaseConnected
)

// rule is what a valid common header of one type looks like. Its first four
// bytes are compared in one go; bits outside of the mask do not matter.
type rule struct {
	// Without data: PLEN is head.
	bareMask, bareWant uint32
	// With data: PLEN is over + 1 to over + limit.
	dataMask, dataWant uint32
	over, limit        uint32
	// In C2HData, Success without LastPDU is wrong.
	flagMask, flagDeny uint32

	head  uint8
	pdo   uint8
	align uint8 // bytes
	ddgst bool
}

const (
	maskType   = 0xff
	maskHDGSTF = uint32(HDGSTF) << 8
	maskDDGSTF = uint32(DDGSTF) << 8
	maskHLEN   = 0xff << 16
	maskPDO    = 0xff << 24
)

// NewConnectReceiver returns the Receiver for the handshake: the controller
// takes an ICReq, the host an ICResp, and either a TermReq.
func NewConnectReceiver(end End) *Receiver {
	r := &Receiver{end: end, phase: phaseConnecting}
	r.deny()
	t := TypeICReq
	if end == Host {
		t = TypeICResp
	}
	r.rules[t] = bareRule(t, &Params{})
	r.allowTermReq()
	return r
}

// NewReceiver returns the Receiver for a connection after the handshake.
func NewReceiver(end End, p Params, lim Limits) *Receiver {
	r := &Receiver{end: end, phase: phaseConnected, params: p}
	r.deny()
	if end == Host {
		if lim.MaxC2HData == 0 {
			lim.MaxC2HData = ^uint32(0)
		}
		r.rules[TypeCapsuleResp] = bareRule(TypeCapsuleResp, &p)
		r.rules[TypeR2T] = bareRule(TypeR2T, &p)
		r.rules[TypeC2HData] = dataRule(TypeC2HData, &p, lim.MaxC2HData)
	} else {
		if lim.MaxICD == 0 {
			lim.MaxICD = MinICD
		}
		r.rules[TypeH2CData] = dataRule(TypeH2CData, &p, p.maxH2CData())
		r.rules[TypeCapsuleCmd] = dataRule(TypeCapsuleCmd, &p, lim.MaxICD)
		r.rules[TypeCapsuleCmd].allowBare(TypeCapsuleCmd, &p)
	}
	r.allowTermReq()
	return r
}

// End returns the end that receives.
func (r *Receiver) End() End { return r.end }

// deny sets rules that nothing fulfils: the type of no header that selects
// rule i is ^i.
func (r *Receiver) deny() {
	for i := range r.rules {
		r.rules[i] = rule{
			bareMask: maskType, bareWant: uint32(^uint8(i)),
			dataMask: maskType, dataWant: uint32(^uint8(i)),
			flagDeny: 1,
		}
	}
}

// allowTermReq takes a TermReq with or without the offending header. Flags and
// PDO are reserved there.
func (r *Receiver) allowTermReq() {
	t := TypeH2CTermReq
	if r.end == Host {
		t = TypeC2HTermReq
	}
	ru := bareRule(t, &Params{})
	ru.dataMask, ru.dataWant = ru.bareMask, ru.bareWant
	ru.over, ru.limit, ru.pdo = TermReqSize, TermReqMaxData, TermReqSize
	r.rules[t] = ru
}

// bareRule is the rule for a type without data.
func bareRule(t Type, p *Params) rule {
	ru := rule{dataMask: maskType, dataWant: uint32(^t), flagDeny: 1}
	ru.allowBare(t, p)
	return ru
}

// allowBare allows PDUs without data. PDO is reserved in them. A data digest
// must not be announced where there is none on the connection; where there is,
// the flag says nothing without data.
func (ru *rule) allowBare(t Type, p *Params) {
	l := p.Layout(t)
	ru.head = uint8(l.bareLen)
	ru.bareMask = maskType | maskHLEN
	if t.hasDigests() {
		ru.bareMask |= maskHDGSTF
		if t == TypeCapsuleCmd && !p.DDGST {
			ru.bareMask |= maskDDGSTF
		}
	}
	ru.bareWant = l.bare & ru.bareMask
}

// dataRule is the rule for a type that must carry data.
func dataRule(t Type, p *Params, limit uint32) rule {
	l := p.Layout(t)
	ru := rule{
		bareMask: maskType, bareWant: uint32(^t),
		dataMask: maskType | maskHDGSTF | maskDDGSTF | maskHLEN | maskPDO,
		dataWant: l.data,
		over:     l.over,
		limit:    min(limit, ^uint32(0)-l.over),
		flagDeny: 1,
		head:     uint8(l.bareLen),
		pdo:      uint8(l.PDO()),
		align:    (p.pda(t) + 1) * 4,
		ddgst:    p.DDGST,
	}
	if t == TypeC2HData {
		ru.flagMask = uint32(LastPDU|Success) << 8
		ru.flagDeny = uint32(Success) << 8
	}
	return ru
}

// Check checks a common header against the state of the connection and returns
// the shape of the PDU. The error is an *Error; of several wrong fields it
// names the first, as the specification wants.
func (r *Receiver) Check(h *Common) (Shape, error) {
	w := binary.LittleEndian.Uint64(h[:])
	head, plen := uint32(w), uint32(w>>32)
	ru := &r.rules[head&15]
	if n := plen - ru.over - 1; n < ru.limit && (head^ru.dataWant)&ru.dataMask == 0 && head&ru.flagMask != ru.flagDeny {
		return Shape{Type(head), Flags(head >> 8), ru.head, ru.pdo, ru.ddgst, n + 1}, nil
	}
	if plen == uint32(ru.head) && (head^ru.bareWant)&ru.bareMask == 0 {
		return Shape{Type: Type(head), Flags: Flags(head >> 8), Head: ru.head}, nil
	}
	return r.checkSlow(h)
}
