package pdu

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// stream is one PDU of each type that goes to end after the handshake, with n
// bytes of data where there is any.
func stream(end End, p Params, n int) []byte {
	var b []byte
	if end == Host {
		resp, r2t, c2h := p.Layout(TypeCapsuleResp), p.Layout(TypeR2T), p.Layout(TypeC2HData)
		b = AppendCapsuleResp(b, &resp, &testCompletion)
		b = AppendR2T(b, &r2t, R2TFields{1, 2, 0, 8192})
		b = AppendC2HData(b, &c2h, LastPDU, C2HDataFields{CCCID: 1}, sequence(n, 0, 1))
		return AppendTermReq(b, Controller, TermReqFields{FES: FESSequenceError}, b[:24])
	}
	cmd, h2c := p.Layout(TypeCapsuleCmd), p.Layout(TypeH2CData)
	b = AppendCapsuleCmd(b, &cmd, &testCommand, nil)
	b = AppendCapsuleCmd(b, &cmd, &testCommand, sequence(n, 9, 3))
	b = AppendH2CData(b, &h2c, LastPDU, H2CDataFields{CCCID: 1}, sequence(n, 0, 1))
	return AppendTermReq(b, Host, TermReqFields{FES: FESSequenceError}, b[:24])
}

func streamTypes(end End) []Type {
	if end == Host {
		return []Type{TypeCapsuleResp, TypeR2T, TypeC2HData, TypeC2HTermReq}
	}
	return []Type{TypeCapsuleCmd, TypeCapsuleCmd, TypeH2CData, TypeH2CTermReq}
}

func TestReaderStream(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader,
		"bytes": iotest.OneByteReader, "data with EOF": iotest.DataErrReader,
	}
	for _, end := range []End{Host, Controller} {
		for _, p := range []Params{plain, digests, padded, all} {
			b := stream(end, p, 4096)
			for name, wrap := range readers {
				r := NewReader(wrap(bytes.NewReader(b)), NewReceiver(end, p, Limits{}))
				n := 0
				for i, want := range streamTypes(end) {
					pdu, err := r.Next()
					if err != nil || pdu.Type() != want {
						t.Fatalf("%v, %+v, %s, PDU %d: %v, %v", end, p, name, i, pdu.Type(), err)
					}
					n += int(pdu.Common().PLEN())
				}
				if _, err := r.Next(); err != io.EOF || n != len(b) {
					t.Errorf("%v, %+v, %s: %d of %d bytes, then %v", end, p, name, n, len(b), err)
				}
			}
		}
	}
}

// TestReaderTruncated ends the stream after every byte.
func TestReaderTruncated(t *testing.T) {
	b := stream(Controller, all, 1024)[76:] // one capsule with data first
	l := all.Layout(TypeCapsuleCmd)
	whole := int(l.PLEN(1024))
	for n := range whole {
		_, err := NewReader(bytes.NewReader(b[:n]), NewReceiver(Controller, all, Limits{})).Next()
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err != want {
			t.Fatalf("%d of %d bytes: %v", n, whole, err)
		}
	}
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(bytes.NewReader(b[:100]), iotest.ErrReader(broken)), NewReceiver(Controller, all, Limits{}))
	if _, err := r.Next(); err != broken {
		t.Errorf("broken stream: %v", err)
	}
}

func TestReaderRefuses(t *testing.T) {
	c2h, r2t := plain.Layout(TypeC2HData), digests.Layout(TypeR2T)
	hostPlain, hostDigests := NewReceiver(Host, plain, Limits{}), NewReceiver(Host, digests, Limits{})
	data := func(mutate func(h *C2HData)) []byte {
		b := AppendC2HData(nil, &c2h, LastPDU, C2HDataFields{CCCID: 1}, make([]byte, 64))
		mutate((*C2HData)(b))
		return b
	}
	flipped := AppendR2T(nil, &r2t, R2TFields{1, 2, 0, 4096})
	flipped[10] ^= 1
	h2c := plain.Layout(TypeH2CData)
	longer := AppendH2CData(nil, &h2c, 0, H2CDataFields{}, make([]byte, 64))
	(*H2CData)(longer).SetDATAL(65)
	r2tPlain := plain.Layout(TypeR2T)
	pda := AppendICReq(nil, ICReqFields{HPDA: 32})
	cases := []struct {
		name  string
		rcv   *Receiver
		b     []byte
		fes   FES
		fei   uint32
		field string
	}{
		{"common header", hostPlain, data(func(h *C2HData) { h.Common().SetPDO(1) }), FESInvalidHeaderField, 3, "PDO"},
		{"DATAL below the data", hostPlain, data(func(h *C2HData) { h.SetDATAL(63) }), FESInvalidHeaderField, 16, "DATAL"},
		{"DATAL above the data", NewReceiver(Controller, plain, Limits{}), longer, FESInvalidHeaderField, 16, "DATAL"},
		{"DATAL 0", hostPlain, data(func(h *C2HData) { h.SetDATAL(0) }), FESInvalidHeaderField, 16, "DATAL"},
		{"DATAO + DATAL overflows", hostPlain, data(func(h *C2HData) { h.SetDATAO(^uint32(0) - 63) }), FESDataOutOfRange, 0, "DATAO"},
		{"R2TL 0", hostPlain, AppendR2T(nil, &r2tPlain, R2TFields{1, 2, 0, 0}), FESInvalidHeaderField, 16, "R2TL"},
		{"R2TO + R2TL overflows", hostPlain, AppendR2T(nil, &r2tPlain, R2TFields{1, 2, 1 << 31, 1 << 31}), FESDataOutOfRange, 0, "R2TO"},
		{"header digest", hostDigests, flipped, FESHeaderDigestError, GetDigest(flipped[24:]), "HDGST"},
		{"HPDA", NewConnectReceiver(Controller), pda, FESInvalidHeaderField, 10, "HPDA"},
		{"PFV", NewConnectReceiver(Controller), AppendICReq(nil, ICReqFields{PFV: 1}), FESUnsupportedParameter, 8, "PFV"},
	}
	for _, c := range cases {
		p, err := NewReader(bytes.NewReader(c.b), c.rcv).Next()
		var e *Error
		if !errors.As(err, &e) || e.FES != c.fes || e.FEI != c.fei || e.Field != c.field {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(p.Header) < CommonSize || !bytes.HasPrefix(c.b, p.Header) {
			t.Errorf("%s: header % x", c.name, p.Header)
		}
		term := e.AppendTermReq(nil, c.rcv.End(), p.Header)
		got, err := NewReader(bytes.NewReader(term), NewReceiver(c.rcv.End().Peer(), all, Limits{})).Next()
		if err != nil || (*TermReq)(got.Header).FES() != c.fes || !bytes.Equal(got.Data, p.Header) {
			t.Errorf("%s: TermReq % x: %v", c.name, term, err)
		}
	}
}

// The largest valid ranges pass.
func TestRangeBounds(t *testing.T) {
	l := plain.Layout(TypeR2T)
	for _, f := range []R2TFields{{R2TL: 1}, {R2TL: ^uint32(0)}, {R2TO: 1<<31 - 1, R2TL: 1 << 31}} {
		var h R2T
		h.Encode(&l, f)
		if err := h.Check(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	c2h, h2c := plain.Layout(TypeC2HData), plain.Layout(TypeH2CData)
	last := ^uint32(0) - 64 // 64 bytes from here end at 4 GiB - 1
	b := AppendC2HData(nil, &c2h, 0, C2HDataFields{DATAO: last}, make([]byte, 64))
	if _, err := NewReader(bytes.NewReader(b), NewReceiver(Host, plain, Limits{})).Next(); err != nil {
		t.Error(err)
	}
	b = AppendH2CData(nil, &h2c, 0, H2CDataFields{DATAO: last}, make([]byte, 64))
	if _, err := NewReader(bytes.NewReader(b), NewReceiver(Controller, plain, Limits{})).Next(); err != nil {
		t.Error(err)
	}
	(*H2CData)(b).SetDATAO(last + 1)
	var e *Error
	if _, err := NewReader(bytes.NewReader(b), NewReceiver(Controller, plain, Limits{})).Next(); !errors.As(err, &e) || e.FES != FESDataOutOfRange {
		t.Errorf("H2CData beyond 4 GiB: %v", err)
	}
}

func TestReaderDataDigest(t *testing.T) {
	l := all.Layout(TypeC2HData)
	b := AppendC2HData(nil, &l, 0, C2HDataFields{CCCID: 1}, []byte("123456789"))
	bad := bytes.Clone(b)
	bad[l.PDO()]++
	r := NewReader(bytes.NewReader(append(bad, b...)), NewReceiver(Host, all, Limits{}))
	p, err := r.Next()
	var e *DataDigestError
	if !errors.As(err, &e) || e.Got != 0xe3069283 || e.Want != referenceCRC32C([]byte("223456789")) {
		t.Fatalf("changed data: %v", err)
	}
	if got, want := e.Error(), "nvme/tcp: C2HData: data digest 0xe3069283, computed 0x"+hex32(e.Want); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if string(p.Data) != "223456789" || (*C2HData)(p.Header).CCCID() != 1 {
		t.Errorf("changed data: PDU %+v", p)
	}
	if p, err := r.Next(); err != nil || string(p.Data) != "123456789" {
		t.Errorf("next PDU: %+v, %v", p, err)
	}
}

func TestReaderLimit(t *testing.T) {
	l := plain.Layout(TypeC2HData)
	h := func(n uint32) []byte {
		b := AppendC2HData(nil, &l, 0, C2HDataFields{}, []byte{0})
		(*C2HData)(b).SetDATAL(n - 24)
		(*Common)(b).SetPLEN(n)
		return b
	}
	for _, c := range []struct {
		max, plen uint32
		want      error
	}{
		{0, DefaultMaxPDU, io.ErrUnexpectedEOF}, {0, DefaultMaxPDU + 1, ErrTooLong},
		{100, 100, io.ErrUnexpectedEOF}, {100, 101, ErrTooLong}, {^uint32(0), ^uint32(0), io.ErrUnexpectedEOF},
	} {
		r := NewReader(bytes.NewReader(h(c.plen)), NewReceiver(Host, plain, Limits{}))
		r.MaxPDU = c.max
		if _, err := r.Next(); err != c.want {
			t.Errorf("limit %d, PLEN %d: %v", c.max, c.plen, err)
		}
		// What a peer announces costs nothing until it arrives.
		if cap(r.buf) > 4*readStep {
			t.Errorf("limit %d, PLEN %d: buffer of %d bytes", c.max, c.plen, cap(r.buf))
		}
	}
}

func TestReseal(t *testing.T) {
	l := all.Layout(TypeC2HData)
	b := AppendC2HData(nil, &l, 0, C2HDataFields{CCCID: 1}, sequence(64, 0, 1))
	(*C2HData)(b).SetDATAO(4096)
	b[len(b)-10] ^= 0xff
	Reseal(b)
	if _, err := NewReader(bytes.NewReader(b), NewReceiver(Host, all, Limits{})).Next(); err != nil {
		t.Error(err)
	}
	// Headers that make no sense are left alone, not tripped over.
	for _, h := range []*Common{
		common(TypeC2HData, hd, 255, 255, 8), common(TypeC2HData, hd, 8, 8, 8), common(TypeC2HData, hd, 0, 0, 0),
	} {
		for n := range 13 {
			Reseal(append(h[:], 0, 0, 0, 0, 0)[:n])
		}
	}
}

func FuzzReader(f *testing.F) {
	for i, p := range refParams {
		f.Add(stream(Host, p, 9), uint8(i), true)
		f.Add(stream(Controller, p, 9), uint8(i), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, params uint8, host bool) {
		p := refParams[int(params)%len(refParams)]
		end := Controller
		if host {
			end = Host
		}
		r := NewReader(bytes.NewReader(b), NewReceiver(end, p, Limits{}))
		for read := 0; ; {
			pdu, err := r.Next()
			if cap(r.buf) > 2*len(b)+4*readStep {
				t.Fatalf("buffer of %d bytes for %d", cap(r.buf), len(b))
			}
			var bad *DataDigestError
			if err != nil && !errors.As(err, &bad) {
				return
			}
			read += int(pdu.Common().PLEN())
			if read > len(b) || len(pdu.Data) != int(pdu.Shape.Data()) {
				t.Fatalf("%d of %d bytes, %d of %d of data", read, len(b), len(pdu.Data), pdu.Shape.Data())
			}
		}
	})
}
