package pdu

import (
	"errors"
	"iter"
	"testing"
)

// verdict is what a receiver is to make of a common header.
type verdict struct {
	ok              bool
	fes             FES
	fei             uint32
	silent          bool
	head, pdo, data int
	ddgst           bool
}

// judge is Receiver.Check once more, spelled out field by field without
// precomputed rules.
func judge(end End, connecting bool, p Params, lim Limits, h *Common) verdict {
	field := func(off uint32) verdict { return verdict{fes: FESInvalidHeaderField, fei: off} }
	lengths := map[Type]int{0: 128, 1: 128, 2: 24, 3: 24, 4: 72, 5: 24, 6: 24, 7: 24, 9: 24}
	t, f, plen, pdo := h.Type(), h.Flags(), int(h.PLEN()), int(h.PDO())
	hlen, known := lengths[t]
	toHost := t%2 == 1
	if !known || toHost != (end == Host) {
		return field(0)
	}
	if t == 2 || t == 3 {
		if int(h.HLEN()) != 24 {
			v := field(2)
			v.silent = true
			return v
		}
		if plen < 24 || plen > 152 {
			v := field(4)
			v.silent = true
			return v
		}
		v := verdict{ok: true, head: 24, data: plen - 24}
		if v.data > 0 {
			v.pdo = 24
		}
		return v
	}
	if (t < 2) != connecting {
		return verdict{fes: FESSequenceError}
	}
	head, ddgst, carries := hlen, 0, t == 4 || t == 6 || t == 7
	if t >= 4 {
		if p.HDGST {
			head += 4
		}
		if (f&1 != 0) != p.HDGST {
			return field(1)
		}
	}
	if carries {
		if f&2 != 0 && !p.DDGST || f&2 == 0 && p.DDGST && plen > head {
			return field(1)
		}
		if p.DDGST {
			ddgst = 4
		}
		if t == 7 && f&8 != 0 && f&4 == 0 {
			return field(1)
		}
	}
	if int(h.HLEN()) != hlen {
		return field(2)
	}
	if !carries || plen <= head {
		if plen != head || carries && t != 4 {
			return field(4)
		}
		return verdict{ok: true, head: head}
	}
	align := (int(p.CPDA) + 1) * 4
	if toHost {
		align = (int(p.HPDA) + 1) * 4
	}
	if pdo < head || pdo%align != 0 || pdo > 144 {
		return field(3)
	}
	data := plen - pdo - ddgst
	if data < 1 {
		return field(4)
	}
	switch {
	case t == 4 && data > int(lim.MaxICD):
		return field(4)
	case t == 6 && data > int(p.MaxH2CData):
		return verdict{fes: FESDataLimitExceeded}
	case t == 7 && data > int(lim.MaxC2HData):
		return verdict{fes: FESDataOutOfRange}
	}
	return verdict{ok: true, head: head, pdo: pdo, data: data, ddgst: ddgst != 0}
}

var (
	refParams = []Params{
		{MaxH2CData: 4096},
		{HDGST: true, MaxH2CData: 4096},
		{DDGST: true, HPDA: 31, CPDA: 31, MaxH2CData: 8192},
		{HDGST: true, DDGST: true, HPDA: 2, CPDA: 15, MaxH2CData: 4096},
		{HPDA: 4, CPDA: 5, MaxH2CData: 4096},
		{HDGST: true, HPDA: 17, CPDA: 17, MaxH2CData: 4096},
	}
	refLimits = Limits{MaxICD: 8192, MaxC2HData: 16384}
)

// agree reports how Check and judge differ on h, or "".
func agree(rcv *Receiver, end End, connecting bool, p Params, h *Common) (got verdict, want verdict, same bool) {
	want = judge(end, connecting, p, refLimits, h)
	s, err := rcv.Check(h)
	var e *Error
	if errors.As(err, &e) {
		got = verdict{fes: e.FES, fei: e.FEI, silent: e.Silent}
	} else {
		got = verdict{ok: true, head: s.Head(), pdo: s.PDO(), data: int(s.Data()), ddgst: s.DDGST()}
	}
	return got, want, got == want
}

// Values of interest for FLAGS, HLEN, PDO and PLEN.
var interesting = [4][]uint32{
	{0, 1, 2, 3, 4, 7, 8, 12, 15, 0xf0, 0xff},
	{0, 23, 24, 28, 72, 128, 255},
	{0, 1, 20, 24, 28, 32, 36, 48, 64, 72, 76, 84, 128, 132, 144, 148, 192, 255},
	{0, 8, 23, 24, 25, 28, 29, 33, 72, 73, 76, 77, 81, 128, 129, 132, 133, 152, 153, 4120, 4121, 4128,
		4129, 8264, 8265, 8272, 8273, 16408, 16409, 1<<32 - 25, 1<<32 - 1},
}

func setField(h *Common, field int, v uint32) {
	switch field {
	case 0:
		h.SetFlags(Flags(v))
	case 1:
		h.SetHLEN(uint8(v))
	case 2:
		h.SetPDO(uint8(v))
	case 3:
		h.SetPLEN(v)
	}
}

// neighbours are the headers that differ from h in two fields at most.
func neighbours(h Common) iter.Seq[*Common] {
	return func(yield func(*Common) bool) {
		for a := range 3 {
			for b := a + 1; b < 4; b++ {
				for _, va := range interesting[a] {
					for _, vb := range interesting[b] {
						c := h
						setField(&c, a, va)
						setField(&c, b, vb)
						if !yield(&c) {
							return
						}
					}
				}
			}
		}
	}
}

// TestCheckAgainstReference changes one or two fields of valid headers to every
// value of interest.
func TestCheckAgainstReference(t *testing.T) {
	n := 0
	check := func(end End, connecting bool, p Params, typ Type) {
		rcv := NewReceiver(end, p, refLimits)
		if connecting {
			rcv = NewConnectReceiver(end)
		}
		l := p.Layout(typ)
		for _, datal := range []uint32{0, 64} {
			var valid Common
			valid.put(l.bare, l.bareLen)
			if datal != 0 {
				valid.put(l.data, l.PLEN(datal))
			}
			for h := range neighbours(valid) {
				n++
				if got, want, same := agree(rcv, end, connecting, p, h); !same {
					t.Fatalf("% x at the %v, connecting %v, %+v:\ngot  %+v\nwant %+v", *h, end, connecting, p, got, want)
				}
			}
		}
	}
	for _, end := range []End{Host, Controller} {
		for _, typ := range []Type{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x17, 0xff} {
			check(end, true, plain, typ)
			for _, p := range refParams {
				// The other fields of a PDU of a wrong type do not matter.
				if typ.Known() && typ.Receiver() == end {
					check(end, false, p, typ)
				}
			}
			check(end, false, refParams[0], typ)
		}
	}
	if n < 50_000 {
		t.Errorf("only %d headers tried", n)
	}
}

func FuzzCheck(f *testing.F) {
	for _, c := range accepted {
		f.Add(c.h[:], uint8(0), true, false)
	}
	for _, c := range refused {
		f.Add(c.h[:], uint8(3), false, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, params uint8, host, connecting bool) {
		if len(b) < CommonSize {
			return
		}
		p := refParams[int(params)%len(refParams)]
		end := Controller
		if host {
			end = Host
		}
		rcv := NewReceiver(end, p, refLimits)
		if connecting {
			rcv = NewConnectReceiver(end)
		}
		h := (*Common)(b)
		if got, want, same := agree(rcv, end, connecting, p, h); !same {
			t.Fatalf("% x at the %v, connecting %v, %+v:\ngot  %+v\nwant %+v", *h, end, connecting, p, got, want)
		}
		if s, err := rcv.Check(h); err == nil {
			end := uint64(s.PDO()) + uint64(s.Data())
			if s.DDGST() {
				end += DigestSize
			}
			if end = max(end, uint64(s.Head())); end != uint64(h.PLEN()) {
				t.Fatalf("% x: the parts end at %d", *h, end)
			}
		}
	})
}
