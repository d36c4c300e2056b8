package pdu

import "testing"

var (
	sinkShape Shape
	sinkU32   uint32
	sinkCmd   = testCommand
	sinkCpl   = testCompletion
)

// TestNoAllocs holds the data path to its promise.
func TestNoAllocs(t *testing.T) {
	var b [MaxPDO]byte
	for _, p := range []Params{plain, all} {
		cmd, resp, h2c, c2h, r2t := p.Layout(TypeCapsuleCmd), p.Layout(TypeCapsuleResp), p.Layout(TypeH2CData), p.Layout(TypeC2HData), p.Layout(TypeR2T)
		ctrl, host := NewReceiver(Controller, p, Limits{}), NewReceiver(Host, p, Limits{})
		check := func(r *Receiver) Shape {
			s, err := r.Check((*Common)(b[:]))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		n := testing.AllocsPerRun(100, func() {
			(*CapsuleCmd)(b[:]).Encode(&cmd, &sinkCmd, 512)
			cmd.Finish(b[:], true)
			check(ctrl)
			(*CapsuleCmd)(b[:]).Command(&sinkCmd)
			(*H2CData)(b[:]).Encode(&h2c, 0, H2CDataFields{DATAL: 512})
			h2c.Finish(b[:], true)
			if (*H2CData)(b[:]).Check(check(ctrl)) != nil {
				t.Fatal("H2CData")
			}
			(*CapsuleResp)(b[:]).Encode(&resp, &sinkCpl)
			resp.Finish(b[:], false)
			check(host)
			(*CapsuleResp)(b[:]).Completion(&sinkCpl)
			(*C2HData)(b[:]).Encode(&c2h, 0, C2HDataFields{DATAL: 512})
			c2h.Finish(b[:], true)
			if (*C2HData)(b[:]).Check(check(host)) != nil {
				t.Fatal("C2HData")
			}
			(*R2T)(b[:]).Encode(&r2t, R2TFields{R2TL: 512})
			r2t.Finish(b[:], false)
			if check(host); (*R2T)(b[:]).Check() != nil {
				t.Fatal("R2T")
			}
		})
		if n != 0 {
			t.Errorf("%+v: %v allocations", p, n)
		}
	}
}

func benchParams(b *testing.B, f func(b *testing.B, p Params)) {
	b.Run("plain", func(b *testing.B) { f(b, plain) })
	b.Run("hdgst", func(b *testing.B) { f(b, digests) })
}

func BenchmarkEncodeCapsuleCmd(b *testing.B) {
	benchParams(b, func(b *testing.B, p Params) {
		var buf [MaxPDO]byte
		l := p.Layout(TypeCapsuleCmd)
		b.ReportAllocs()
		for b.Loop() {
			(*CapsuleCmd)(buf[:]).Encode(&l, &sinkCmd, 0)
			l.Finish(buf[:], false)
		}
	})
}

func BenchmarkEncodeCapsuleResp(b *testing.B) {
	benchParams(b, func(b *testing.B, p Params) {
		var buf [MaxPDO]byte
		l := p.Layout(TypeCapsuleResp)
		b.ReportAllocs()
		for b.Loop() {
			(*CapsuleResp)(buf[:]).Encode(&l, &sinkCpl)
			l.Finish(buf[:], false)
		}
	})
}

func BenchmarkEncodeC2HData(b *testing.B) {
	benchParams(b, func(b *testing.B, p Params) {
		var buf [MaxPDO]byte
		l := p.Layout(TypeC2HData)
		b.ReportAllocs()
		off := uint32(0)
		for b.Loop() {
			off += 4096
			(*C2HData)(buf[:]).Encode(&l, LastPDU, C2HDataFields{uint16(off), off, 4096})
			l.Finish(buf[:], true)
		}
	})
}

func BenchmarkEncodeH2CData(b *testing.B) {
	benchParams(b, func(b *testing.B, p Params) {
		var buf [MaxPDO]byte
		l := p.Layout(TypeH2CData)
		b.ReportAllocs()
		off := uint32(0)
		for b.Loop() {
			off += 4096
			(*H2CData)(buf[:]).Encode(&l, LastPDU, H2CDataFields{uint16(off), 7, off, 4096})
			l.Finish(buf[:], true)
		}
	})
}

func BenchmarkEncodeR2T(b *testing.B) {
	benchParams(b, func(b *testing.B, p Params) {
		var buf [MaxPDO]byte
		l := p.Layout(TypeR2T)
		b.ReportAllocs()
		off := uint32(0)
		for b.Loop() {
			off += 4096
			(*R2T)(buf[:]).Encode(&l, R2TFields{uint16(off), 7, off, 4096})
			l.Finish(buf[:], false)
		}
	})
}

func BenchmarkDecodeCapsuleCmd(b *testing.B) {
	benchDecode(b, TypeCapsuleCmd, func(h []byte, _ Shape) bool {
		(*CapsuleCmd)(h).Command(&sinkCmd)
		return true
	})
}

func BenchmarkDecodeCapsuleResp(b *testing.B) {
	benchDecode(b, TypeCapsuleResp, func(h []byte, _ Shape) bool {
		(*CapsuleResp)(h).Completion(&sinkCpl)
		return true
	})
}

func BenchmarkDecodeC2HData(b *testing.B) {
	benchDecode(b, TypeC2HData, func(h []byte, s Shape) bool {
		v := (*C2HData)(h)
		sinkU32 = uint32(v.CCCID()) + v.DATAO() + v.DATAL()
		return v.Check(s) == nil
	})
}

func BenchmarkDecodeH2CData(b *testing.B) {
	benchDecode(b, TypeH2CData, func(h []byte, s Shape) bool {
		v := (*H2CData)(h)
		sinkU32 = uint32(v.CCCID()) + uint32(v.TTAG()) + v.DATAO() + v.DATAL()
		return v.Check(s) == nil
	})
}

func BenchmarkDecodeR2T(b *testing.B) {
	benchDecode(b, TypeR2T, func(h []byte, s Shape) bool {
		v := (*R2T)(h)
		sinkU32 = uint32(v.CCCID()) + uint32(v.TTAG()) + v.R2TO() + v.R2TL()
		return v.Check() == nil
	})
}

// benchDecode checks a common header, verifies the header digest if there is
// one, and leaves it to rest to read what an engine needs.
func benchDecode(b *testing.B, t Type, rest func(h []byte, s Shape) bool) {
	benchParams(b, func(b *testing.B, p Params) {
		l := p.Layout(t)
		data := make([]byte, 512)
		var h []byte
		switch t {
		case TypeCapsuleCmd:
			h = AppendCapsuleCmd(nil, &l, &testCommand, data)
		case TypeCapsuleResp:
			h = AppendCapsuleResp(nil, &l, &testCompletion)
		case TypeC2HData:
			h = AppendC2HData(nil, &l, LastPDU, C2HDataFields{1, 0, 0}, data)
		case TypeH2CData:
			h = AppendH2CData(nil, &l, LastPDU, H2CDataFields{1, 1, 0, 0}, data)
		case TypeR2T:
			h = AppendR2T(nil, &l, R2TFields{1, 1, 0, 4096})
		}
		r := NewReceiver(t.Receiver(), p, Limits{})
		b.ReportAllocs()
		for b.Loop() {
			s, err := r.Check((*Common)(h))
			if err != nil {
				b.Fatal(err)
			}
			if p.HDGST && VerifyHeader(h, s.Head()-DigestSize) != nil {
				b.Fatal("header digest")
			}
			if !rest(h, s) {
				b.Fatal("rest")
			}
			sinkShape = s
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"24", 24}, {"72", 72}, {"512", 512}, {"4KiB", 4 << 10}, {"128KiB", 128 << 10}} {
		b.Run(size.name, func(b *testing.B) {
			data := sequence(size.n, 1, 3)
			b.SetBytes(int64(size.n))
			b.ReportAllocs()
			for b.Loop() {
				sinkU32 = Digest(data)
			}
		})
	}
}
