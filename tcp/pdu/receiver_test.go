package pdu

import (
	"errors"
	"strings"
	"testing"
)

// common builds a common header from its fields.
func common(t Type, f Flags, hlen, pdo uint8, plen uint32) *Common {
	var h Common
	h.SetType(t)
	h.SetFlags(f)
	h.SetHLEN(hlen)
	h.SetPDO(pdo)
	h.SetPLEN(plen)
	return &h
}

const hd = HDGSTF | DDGSTF

var accepted = []struct {
	name   string
	rcv    *Receiver
	h      *Common
	flags  Flags
	head   int
	pdo    int
	data   uint32
	digest bool // data digest
}{
	{"ICReq", NewConnectReceiver(Controller), common(TypeICReq, 0, 128, 0, 128), 0, 128, 0, 0, false},
	{"ICResp", NewConnectReceiver(Host), common(TypeICResp, 0, 128, 0, 128), 0, 128, 0, 0, false},
	{"ICResp, reserved fields set", NewConnectReceiver(Host), common(TypeICResp, 0xff, 128, 77, 128), 0, 128, 0, 0, false},
	{"TermReq instead of ICResp", NewConnectReceiver(Host), common(TypeC2HTermReq, 0, 24, 0, 152), 0, 24, 24, 128, false},
	{"TermReq instead of ICReq", NewConnectReceiver(Controller), common(TypeH2CTermReq, 0, 24, 0, 24), 0, 24, 0, 0, false},
	{"TermReq, digests on", NewReceiver(Host, digests, Limits{}), common(TypeC2HTermReq, 0, 24, 0, 32), 0, 24, 24, 8, false},
	{"TermReq, reserved fields set", NewReceiver(Controller, digests, Limits{}), common(TypeH2CTermReq, 0xff, 24, 9, 25), 0, 24, 24, 1, false},

	{"CapsuleCmd", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 0, 72), 0, 72, 0, 0, false},
	{"CapsuleCmd, PDO without data", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 72, 72), 0, 72, 0, 0, false},
	{"CapsuleCmd, data", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 72, 72+8192), 0, 72, 72, 8192, false},
	{"CapsuleCmd, higher limit", NewReceiver(Controller, plain, Limits{MaxICD: 16384}), common(TypeCapsuleCmd, 0, 72, 72, 72+16384), 0, 72, 72, 16384, false},
	{"CapsuleCmd, digests", NewReceiver(Controller, digests, Limits{}), common(TypeCapsuleCmd, HDGSTF, 72, 0, 76), HDGSTF, 76, 0, 0, false},
	{"CapsuleCmd, digests, DDGSTF without data", NewReceiver(Controller, digests, Limits{}), common(TypeCapsuleCmd, hd, 72, 0, 76), HDGSTF, 76, 0, 0, false},
	{"CapsuleCmd, digests, data", NewReceiver(Controller, digests, Limits{}), common(TypeCapsuleCmd, hd, 72, 76, 81), hd, 76, 76, 1, true},
	{"CapsuleCmd, padded", NewReceiver(Controller, padded, Limits{}), common(TypeCapsuleCmd, 0, 72, 128, 129), 0, 72, 128, 1, false},
	{"CapsuleCmd, most padding needed", NewReceiver(Controller, Params{HDGST: true, CPDA: 17}, Limits{}), common(TypeCapsuleCmd, HDGSTF, 72, 144, 145), HDGSTF, 76, 144, 1, false},
	{"CapsuleCmd, more padding than needed", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 100, 101), 0, 72, 100, 1, false},

	{"CapsuleResp", NewReceiver(Host, plain, Limits{}), common(TypeCapsuleResp, 0, 24, 0, 24), 0, 24, 0, 0, false},
	{"CapsuleResp, reserved flags and PDO", NewReceiver(Host, plain, Limits{}), common(TypeCapsuleResp, 0xfe, 24, 24, 24), 0, 24, 0, 0, false},
	{"CapsuleResp, digests", NewReceiver(Host, all, Limits{}), common(TypeCapsuleResp, HDGSTF, 24, 0, 28), HDGSTF, 28, 0, 0, false},
	{"R2T", NewReceiver(Host, plain, Limits{}), common(TypeR2T, 0, 24, 0, 24), 0, 24, 0, 0, false},
	{"R2T, digests", NewReceiver(Host, digests, Limits{}), common(TypeR2T, HDGSTF, 24, 0, 28), HDGSTF, 28, 0, 0, false},

	{"C2HData", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, LastPDU|Success, 24, 24, 25), LastPDU | Success, 24, 24, 1, false},
	{"C2HData, longest", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 24, ^uint32(0)), 0, 24, 24, ^uint32(0) - 24, false},
	{"C2HData, limit", NewReceiver(Host, plain, Limits{MaxC2HData: 1 << 20}), common(TypeC2HData, 0, 24, 24, 24+1<<20), 0, 24, 24, 1 << 20, false},
	{"C2HData, all", NewReceiver(Host, all, Limits{}), common(TypeC2HData, hd|LastPDU, 24, 36, 41), hd | LastPDU, 28, 36, 1, true},
	{"C2HData, all, more padding", NewReceiver(Host, all, Limits{}), common(TypeC2HData, hd|LastPDU, 24, 48, 53), hd | LastPDU, 28, 48, 1, true},
	{"C2HData, largest padding", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 144, 145), 0, 24, 144, 1, false},
	{"H2CData", NewReceiver(Controller, plain, Limits{}), common(TypeH2CData, LastPDU, 24, 24, 24+4096), LastPDU, 24, 24, 4096, false},
	{"H2CData, reserved flags", NewReceiver(Controller, plain, Limits{}), common(TypeH2CData, 0xf8, 24, 24, 25), 0, 24, 24, 1, false},
	{"H2CData, all", NewReceiver(Controller, all, Limits{}), common(TypeH2CData, hd, 24, 64, 64+4096+4), hd, 28, 64, 4096, true},
	{"H2CData, MAXH2CDATA", NewReceiver(Controller, Params{MaxH2CData: 131072}, Limits{}), common(TypeH2CData, 0, 24, 24, 24+131072), 0, 24, 24, 131072, false},
}

func TestAccepted(t *testing.T) {
	for _, c := range accepted {
		s, err := c.rcv.Check(c.h)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s.Type() != c.h.Type() || s.Flags() != c.flags || s.Head() != c.head || s.PDO() != c.pdo ||
			s.Data() != c.data || s.DDGST() != c.digest || s.HDGST() != (c.flags&HDGSTF != 0) {
			t.Errorf("%s: %v flags %#x head %d PDO %d data %d HDGST %v DDGST %v", c.name,
				s.Type(), s.Flags(), s.Head(), s.PDO(), s.Data(), s.HDGST(), s.DDGST())
		}
	}
}

var refused = []struct {
	name  string
	rcv   *Receiver
	h     *Common
	fes   FES
	fei   uint32
	field string
}{
	{"undefined type", NewReceiver(Host, plain, Limits{}), common(0x08, 0, 24, 0, 24), FESInvalidHeaderField, 0, "PDU-Type"},
	{"undefined type that looks like R2T", NewReceiver(Host, plain, Limits{}), common(0x19, 0, 24, 0, 24), FESInvalidHeaderField, 0, "PDU-Type"},
	{"undefined type at the end", NewReceiver(Host, plain, Limits{}), common(0xff, 0, 24, 0, 24), FESInvalidHeaderField, 0, "PDU-Type"},
	{"zeros at the host", NewReceiver(Host, plain, Limits{}), common(0, 0, 0, 0, 0), FESInvalidHeaderField, 0, "PDU-Type"},
	{"CapsuleCmd at the host", NewReceiver(Host, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 0, 72), FESInvalidHeaderField, 0, "PDU-Type"},
	{"H2CData at the host", NewReceiver(Host, plain, Limits{}), common(TypeH2CData, 0, 24, 24, 25), FESInvalidHeaderField, 0, "PDU-Type"},
	{"H2CTermReq at the host", NewReceiver(Host, plain, Limits{}), common(TypeH2CTermReq, 0, 24, 0, 24), FESInvalidHeaderField, 0, "PDU-Type"},
	{"R2T at the controller", NewReceiver(Controller, plain, Limits{}), common(TypeR2T, 0, 24, 0, 24), FESInvalidHeaderField, 0, "PDU-Type"},
	{"CapsuleResp at the controller", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleResp, 0, 24, 0, 24), FESInvalidHeaderField, 0, "PDU-Type"},
	{"ICResp at the controller", NewConnectReceiver(Controller), common(TypeICResp, 0, 128, 0, 128), FESInvalidHeaderField, 0, "PDU-Type"},

	{"second ICReq", NewReceiver(Controller, plain, Limits{}), common(TypeICReq, 0, 128, 0, 128), FESSequenceError, 0, "PDU-Type"},
	{"second ICResp", NewReceiver(Host, plain, Limits{}), common(TypeICResp, 0, 128, 0, 128), FESSequenceError, 0, "PDU-Type"},
	{"CapsuleCmd before ICReq", NewConnectReceiver(Controller), common(TypeCapsuleCmd, 0, 72, 0, 72), FESSequenceError, 0, "PDU-Type"},
	{"H2CData before ICReq", NewConnectReceiver(Controller), common(TypeH2CData, 0, 24, 24, 25), FESSequenceError, 0, "PDU-Type"},
	{"CapsuleResp before ICResp", NewConnectReceiver(Host), common(TypeCapsuleResp, 0, 24, 0, 24), FESSequenceError, 0, "PDU-Type"},

	{"header digest missing", NewReceiver(Host, digests, Limits{}), common(TypeCapsuleResp, 0, 24, 0, 24), FESInvalidHeaderField, 1, "FLAGS"},
	{"header digest not negotiated", NewReceiver(Host, plain, Limits{}), common(TypeR2T, HDGSTF, 24, 0, 28), FESInvalidHeaderField, 1, "FLAGS"},
	{"data digest missing", NewReceiver(Host, digests, Limits{}), common(TypeC2HData, HDGSTF, 24, 28, 32), FESInvalidHeaderField, 1, "FLAGS"},
	{"data digest missing in capsule", NewReceiver(Controller, digests, Limits{}), common(TypeCapsuleCmd, HDGSTF, 72, 76, 80), FESInvalidHeaderField, 1, "FLAGS"},
	{"data digest not negotiated", NewReceiver(Controller, plain, Limits{}), common(TypeH2CData, DDGSTF, 24, 24, 29), FESInvalidHeaderField, 1, "FLAGS"},
	{"data digest not negotiated, no data", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, DDGSTF, 72, 0, 72), FESInvalidHeaderField, 1, "FLAGS"},
	{"SUCCESS without LAST_PDU", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, Success, 24, 24, 25), FESInvalidHeaderField, 1, "FLAGS"},

	{"ICReq HLEN", NewConnectReceiver(Controller), common(TypeICReq, 0, 127, 0, 128), FESInvalidHeaderField, 2, "HLEN"},
	{"ICResp HLEN", NewConnectReceiver(Host), common(TypeICResp, 0, 24, 0, 128), FESInvalidHeaderField, 2, "HLEN"},
	{"CapsuleCmd HLEN", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 71, 0, 72), FESInvalidHeaderField, 2, "HLEN"},
	{"CapsuleResp HLEN counts the digest", NewReceiver(Host, digests, Limits{}), common(TypeCapsuleResp, HDGSTF, 28, 0, 28), FESInvalidHeaderField, 2, "HLEN"},
	{"R2T HLEN", NewReceiver(Host, plain, Limits{}), common(TypeR2T, 0, 0, 0, 24), FESInvalidHeaderField, 2, "HLEN"},
	{"C2HData HLEN", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 255, 24, 25), FESInvalidHeaderField, 2, "HLEN"},
	{"H2CData HLEN", NewReceiver(Controller, plain, Limits{}), common(TypeH2CData, 0, 25, 24, 25), FESInvalidHeaderField, 2, "HLEN"},

	{"PDO 0 with data", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 0, 25), FESInvalidHeaderField, 3, "PDO"},
	{"PDO in the header", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 68, 80), FESInvalidHeaderField, 3, "PDO"},
	{"PDO in the header digest", NewReceiver(Host, digests, Limits{}), common(TypeC2HData, hd, 24, 24, 40), FESInvalidHeaderField, 3, "PDO"},
	{"PDO not dword aligned", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 26, 40), FESInvalidHeaderField, 3, "PDO"},
	{"PDO against HPDA", NewReceiver(Host, padded, Limits{}), common(TypeC2HData, 0, 24, 24, 100), FESInvalidHeaderField, 3, "PDO"},
	{"PDO against CPDA", NewReceiver(Controller, padded, Limits{}), common(TypeH2CData, 0, 24, 32, 100), FESInvalidHeaderField, 3, "PDO"},
	{"capsule PDO against CPDA", NewReceiver(Controller, padded, Limits{}), common(TypeCapsuleCmd, 0, 72, 72, 100), FESInvalidHeaderField, 3, "PDO"},
	{"PDO above MaxPDO", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 148, 200), FESInvalidHeaderField, 3, "PDO"},

	{"PLEN 0", NewReceiver(Host, plain, Limits{}), common(TypeCapsuleResp, 0, 24, 0, 0), FESInvalidHeaderField, 4, "PLEN"},
	{"ICReq PLEN", NewConnectReceiver(Controller), common(TypeICReq, 0, 128, 0, 129), FESInvalidHeaderField, 4, "PLEN"},
	{"CapsuleResp PLEN", NewReceiver(Host, plain, Limits{}), common(TypeCapsuleResp, 0, 24, 0, 25), FESInvalidHeaderField, 4, "PLEN"},
	{"CapsuleResp PLEN without digest", NewReceiver(Host, digests, Limits{}), common(TypeCapsuleResp, HDGSTF, 24, 0, 24), FESInvalidHeaderField, 4, "PLEN"},
	{"R2T PLEN huge", NewReceiver(Host, plain, Limits{}), common(TypeR2T, 0, 24, 0, ^uint32(0)), FESInvalidHeaderField, 4, "PLEN"},
	{"CapsuleCmd PLEN below HLEN", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 0, 71), FESInvalidHeaderField, 4, "PLEN"},
	{"C2HData PLEN 0, no limit", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 24, 0), FESInvalidHeaderField, 4, "PLEN"},
	{"C2HData PLEN below HLEN, no limit", NewReceiver(Host, digests, Limits{}), common(TypeC2HData, hd, 24, 28, 23), FESInvalidHeaderField, 4, "PLEN"},
	{"C2HData PLEN below PDO, no limit", NewReceiver(Host, padded, Limits{}), common(TypeC2HData, 0, 24, 32, 31), FESInvalidHeaderField, 4, "PLEN"},
	{"C2HData without data", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 24, 24, 24), FESInvalidHeaderField, 4, "PLEN"},
	{"H2CData ends in the padding", NewReceiver(Controller, padded, Limits{}), common(TypeH2CData, 0, 24, 128, 128), FESInvalidHeaderField, 4, "PLEN"},
	{"C2HData of a data digest only", NewReceiver(Host, digests, Limits{}), common(TypeC2HData, hd, 24, 28, 32), FESInvalidHeaderField, 4, "PLEN"},
	{"CapsuleCmd of a data digest only", NewReceiver(Controller, digests, Limits{}), common(TypeCapsuleCmd, hd, 72, 76, 80), FESInvalidHeaderField, 4, "PLEN"},
	{"in-capsule data above the limit", NewReceiver(Controller, plain, Limits{}), common(TypeCapsuleCmd, 0, 72, 72, 72+8193), FESInvalidHeaderField, 4, "PLEN"},

	{"H2CData above MAXH2CDATA", NewReceiver(Controller, plain, Limits{}), common(TypeH2CData, 0, 24, 24, 24+4097), FESDataLimitExceeded, 0, "PLEN"},
	{"H2CData huge", NewReceiver(Controller, digests, Limits{}), common(TypeH2CData, hd, 24, 28, ^uint32(0)), FESDataLimitExceeded, 0, "PLEN"},
	{"C2HData above the limit", NewReceiver(Host, plain, Limits{MaxC2HData: 4096}), common(TypeC2HData, 0, 24, 24, 24+4097), FESDataOutOfRange, 0, "PLEN"},

	{"first wrong field counts", NewReceiver(Host, digests, Limits{}), common(TypeC2HData, 0, 25, 1, 0), FESInvalidHeaderField, 1, "FLAGS"},
	{"second wrong field counts", NewReceiver(Host, plain, Limits{}), common(TypeC2HData, 0, 25, 1, 100), FESInvalidHeaderField, 2, "HLEN"},
	{"third wrong field counts", NewReceiver(Host, plain, Limits{MaxC2HData: 1}), common(TypeC2HData, 0, 24, 1, 100), FESInvalidHeaderField, 3, "PDO"},
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		s, err := c.rcv.Check(c.h)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v, %+v", c.name, err, s)
			continue
		}
		if s != (Shape{}) {
			t.Errorf("%s: shape %+v with an error", c.name, s)
		}
		if e.PDU != c.h.Type() || e.FES != c.fes || e.FEI != c.fei || e.Field != c.field || e.Silent {
			t.Errorf("%s: %v, FEI %d, field %s, silent %v", c.name, e, e.FEI, e.Field, e.Silent)
		}
		if !strings.Contains(e.Error(), e.Field) || e.Reason == "" {
			t.Errorf("%s: says %q", c.name, e)
		}
		var h TermReq
		copy(h[:], e.AppendTermReq(nil, c.rcv.End(), c.h[:]))
		if h.Common().Type().Receiver() != c.rcv.End().Peer() || h.FES() != c.fes || h.FEI() != c.fei || h.Common().PLEN() != 32 {
			t.Errorf("%s: TermReq % x", c.name, h)
		}
	}
}

// A malformed TermReq must not be answered with another.
func TestMalformedTermReq(t *testing.T) {
	for _, rcv := range []*Receiver{
		NewConnectReceiver(Host), NewConnectReceiver(Controller),
		NewReceiver(Host, all, Limits{}), NewReceiver(Controller, all, Limits{}),
	} {
		typ := TypeH2CTermReq
		if rcv.End() == Host {
			typ = TypeC2HTermReq
		}
		for _, h := range []*Common{
			common(typ, 0, 23, 0, 24), common(typ, 0, 24, 0, 23), common(typ, 0, 24, 0, 153),
			common(typ, 0, 24, 0, 0), common(typ, 0, 24, 0, ^uint32(0)), common(typ, 0, 0, 0, 0),
		} {
			_, err := rcv.Check(h)
			var e *Error
			if !errors.As(err, &e) || !e.Silent {
				t.Errorf("% x at the %v: %v", *h, rcv.End(), err)
				continue
			}
			if b := e.AppendTermReq([]byte{1}, rcv.End(), h[:]); len(b) != 1 {
				t.Errorf("% x: answered with % x", *h, b)
			}
		}
	}
}
