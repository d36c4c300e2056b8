//qpoll:hot

package pdu

import "encoding/binary"

// Shape is where the parts of one PDU lie, as its common header tells. Only
// Receiver.Check makes one, so the lengths can be relied on.
type Shape struct {
	head uint32 // type, flags, Head, PDO
	data uint32
}

// Type returns the type of the PDU.
func (s Shape) Type() Type { return Type(s.head) }

// Flags returns the flags that have a meaning in this PDU.
func (s Shape) Flags() Flags { return Flags(s.head >> 8) }

// Head returns the length of the header and its digest in bytes: how much must
// have been received before the header may be looked at.
func (s Shape) Head() int { return int(s.head >> 16 & 0xff) }

// PDO returns the offset of the data in bytes, 0 if there is none.
func (s Shape) PDO() int { return int(s.head >> 24) }

// Data returns the length of the data in bytes.
func (s Shape) Data() uint32 { return s.data }

// HDGST reports whether a header digest follows the header.
func (s Shape) HDGST() bool { return s.head&maskHDGSTF != 0 }

// DDGST reports whether a data digest follows the data.
func (s Shape) DDGST() bool { return s.head&maskDDGSTF != 0 }

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

	bareKeep, dataKeep uint32 // type and flags for the Shape
	dataPlace          uint32 // Head and PDO, where they are in a Shape

	head  uint32
	align uint32 // bytes
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
	ru.over, ru.limit = TermReqSize, TermReqMaxData
	ru.dataKeep, ru.dataPlace = ru.bareKeep, place(TermReqSize, TermReqSize)
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
	ru.head = l.bareLen
	ru.bareMask = maskType | maskHLEN
	ru.bareKeep = maskType
	if t.hasDigests() {
		ru.bareMask |= maskHDGSTF
		ru.bareKeep |= maskHDGSTF
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
		dataMask:  maskType | maskHDGSTF | maskDDGSTF | maskHLEN | maskPDO,
		dataWant:  l.data,
		over:      l.over,
		limit:     min(limit, ^uint32(0)-l.over),
		flagDeny:  1,
		dataKeep:  maskType | maskHDGSTF | maskDDGSTF,
		dataPlace: place(l.bareLen, l.data>>24),
		head:      l.bareLen,
		align:     (uint32(p.pda(t)) + 1) * 4,
	}
	switch t {
	case TypeH2CData:
		ru.dataKeep |= uint32(LastPDU) << 8
	case TypeC2HData:
		ru.dataKeep |= uint32(LastPDU|Success) << 8
		ru.flagMask = uint32(LastPDU|Success) << 8
		ru.flagDeny = uint32(Success) << 8
	}
	return ru
}

// place packs Head and PDO as a Shape has them.
func place(head, pdo uint32) uint32 { return head<<16 | pdo<<24 }

// Check checks a common header against the state of the connection and returns
// the shape of the PDU. The error is an *Error; of several wrong fields it
// names the first, as the specification wants.
func (r *Receiver) Check(h *Common) (Shape, error) {
	w := binary.LittleEndian.Uint64(h[:])
	head, plen := uint32(w), uint32(w>>32)
	ru := &r.rules[head&15]
	if n := plen - ru.over - 1; n < ru.limit && (head^ru.dataWant)&ru.dataMask == 0 && head&ru.flagMask != ru.flagDeny {
		return Shape{head&ru.dataKeep | ru.dataPlace, n + 1}, nil
	}
	if plen == ru.head && (head^ru.bareWant)&ru.bareMask == 0 {
		return Shape{head&ru.bareKeep | plen<<16, 0}, nil
	}
	return r.checkSlow(h)
}
