package pdu

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/nvme"
)

// TestOffsets decodes headers whose every byte tells its offset.
func TestOffsets(t *testing.T) {
	b := sequence(128, 0, 1)
	le16 := func(off int) uint32 { return uint32(off) | uint32(off+1)<<8 }
	le32 := func(off int) uint32 { return le16(off) | le16(off+2)<<16 }
	var cmd nvme.Command
	(*CapsuleCmd)(b).Command(&cmd)
	var cpl nvme.Completion
	(*CapsuleResp)(b).Completion(&cpl)
	for _, c := range []struct {
		name      string
		got, want uint32
	}{
		{"Type", uint32((*Common)(b).Type()), 0}, {"FLAGS", uint32((*Common)(b).Flags()), 1},
		{"HLEN", uint32((*Common)(b).HLEN()), 2}, {"PDO", uint32((*Common)(b).PDO()), 3},
		{"PLEN", (*Common)(b).PLEN(), le32(4)},
		{"ICReq.PFV", uint32((*ICReq)(b).PFV()), le16(8)}, {"ICReq.HPDA", uint32((*ICReq)(b).HPDA()), 10},
		{"ICReq.MAXR2T", (*ICReq)(b).MAXR2T(), le32(12)},
		{"ICResp.PFV", uint32((*ICResp)(b).PFV()), le16(8)}, {"ICResp.CPDA", uint32((*ICResp)(b).CPDA()), 10},
		{"ICResp.MAXH2CDATA", (*ICResp)(b).MAXH2CDATA(), le32(12)},
		{"TermReq.FES", uint32((*TermReq)(b).FES()), le16(8)}, {"TermReq.FEI", (*TermReq)(b).FEI(), le32(10)},
		{"CapsuleCmd.CID", uint32((*CapsuleCmd)(b).CID()), le16(10)}, {"Command.CID", uint32(cmd.CID), le16(10)},
		{"Command.CDW15", cmd.CDW15, le32(68)},
		{"CapsuleResp.CID", uint32((*CapsuleResp)(b).CID()), le16(20)}, {"Completion.CID", uint32(cpl.CID), le16(20)},
		{"Completion.StatusPhase", uint32(cpl.StatusPhase), le16(22)},
		{"H2CData.CCCID", uint32((*H2CData)(b).CCCID()), le16(8)}, {"H2CData.TTAG", uint32((*H2CData)(b).TTAG()), le16(10)},
		{"H2CData.DATAO", (*H2CData)(b).DATAO(), le32(12)}, {"H2CData.DATAL", (*H2CData)(b).DATAL(), le32(16)},
		{"C2HData.CCCID", uint32((*C2HData)(b).CCCID()), le16(8)},
		{"C2HData.DATAO", (*C2HData)(b).DATAO(), le32(12)}, {"C2HData.DATAL", (*C2HData)(b).DATAL(), le32(16)},
		{"R2T.CCCID", uint32((*R2T)(b).CCCID()), le16(8)}, {"R2T.TTAG", uint32((*R2T)(b).TTAG()), le16(10)},
		{"R2T.R2TO", (*R2T)(b).R2TO(), le32(12)}, {"R2T.R2TL", (*R2T)(b).R2TL(), le32(16)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

// Setters write where the accessors read, and nothing else.
func TestSetters(t *testing.T) {
	var b [128]byte
	c, h2c, c2h, r2t := (*Common)(b[:]), (*H2CData)(b[:]), (*C2HData)(b[:]), (*R2T)(b[:])
	for _, s := range []struct {
		name string
		set  func()
		get  func() uint32
		want uint32
	}{
		{"Type", func() { c.SetType(9) }, func() uint32 { return uint32(c.Type()) }, 9},
		{"Flags", func() { c.SetFlags(0x81) }, func() uint32 { return uint32(c.Flags()) }, 0x81},
		{"HLEN", func() { c.SetHLEN(200) }, func() uint32 { return uint32(c.HLEN()) }, 200},
		{"PDO", func() { c.SetPDO(201) }, func() uint32 { return uint32(c.PDO()) }, 201},
		{"PLEN", func() { c.SetPLEN(0x81828384) }, c.PLEN, 0x81828384},
		{"H2CData.DATAO", func() { h2c.SetDATAO(0x81828384) }, h2c.DATAO, 0x81828384},
		{"H2CData.DATAL", func() { h2c.SetDATAL(0x81828384) }, h2c.DATAL, 0x81828384},
		{"C2HData.DATAO", func() { c2h.SetDATAO(0x81828384) }, c2h.DATAO, 0x81828384},
		{"C2HData.DATAL", func() { c2h.SetDATAL(0x81828384) }, c2h.DATAL, 0x81828384},
		{"R2T.R2TO", func() { r2t.SetR2TO(0x81828384) }, r2t.R2TO, 0x81828384},
		{"R2T.R2TL", func() { r2t.SetR2TL(0x81828384) }, r2t.R2TL, 0x81828384},
	} {
		clear(b[:])
		s.set()
		n := 0
		for _, v := range b {
			if v != 0 {
				n++
			}
		}
		width := 1
		if s.want > 0xff {
			width = 4
		}
		if s.get() != s.want || n != width {
			t.Errorf("%s: %#x, %d bytes written", s.name, s.get(), n)
		}
	}
	var cmd CapsuleCmd
	cmd.SetCommand(&testCommand)
	var resp CapsuleResp
	resp.SetCompletion(&testCompletion)
	if !bytes.Equal(cmd[8:], unhex(t, testCommandHex)) || !bytes.Equal(resp[8:], unhex(t, testCompletionHex)) {
		t.Errorf("% x\n% x", cmd, resp)
	}
}

// Encode must leave nothing of what was in the buffer before.
func TestEncodeOverwrites(t *testing.T) {
	cmd, resp, h2c, c2h, r2t := all.Layout(TypeCapsuleCmd), all.Layout(TypeCapsuleResp), all.Layout(TypeH2CData), all.Layout(TypeC2HData), all.Layout(TypeR2T)
	for name, f := range map[string]func(b []byte) int{
		"ICReq":       func(b []byte) int { (*ICReq)(b).Encode(ICReqFields{}); return 128 },
		"ICResp":      func(b []byte) int { (*ICResp)(b).Encode(ICRespFields{}); return 128 },
		"TermReq":     func(b []byte) int { (*TermReq)(b).Encode(Host, TermReqFields{}, 0); return 24 },
		"CapsuleCmd":  func(b []byte) int { (*CapsuleCmd)(b).Encode(&cmd, &testCommand, 1); return cmd.Finish(b, true) },
		"CapsuleResp": func(b []byte) int { (*CapsuleResp)(b).Encode(&resp, &testCompletion); return resp.Finish(b, false) },
		"H2CData":     func(b []byte) int { (*H2CData)(b).Encode(&h2c, 0, H2CDataFields{}); return h2c.Finish(b, true) },
		"C2HData":     func(b []byte) int { (*C2HData)(b).Encode(&c2h, 0, C2HDataFields{}); return c2h.Finish(b, true) },
		"R2T":         func(b []byte) int { (*R2T)(b).Encode(&r2t, R2TFields{}); return r2t.Finish(b, false) },
	} {
		clean, dirty := make([]byte, MaxPDO), bytes.Repeat([]byte{0xee}, MaxPDO)
		n := f(clean)
		if f(dirty); !bytes.Equal(clean[:n], dirty[:n]) {
			t.Errorf("%s:\n% x\n% x", name, clean[:n], dirty[:n])
		}
		if bytes.Count(dirty[n:], []byte{0xee}) != MaxPDO-n {
			t.Errorf("%s writes beyond its %d bytes", name, n)
		}
	}
}

func TestDataOffset(t *testing.T) {
	for _, c := range []struct {
		hlen  int
		hdgst bool
		pda   uint8
		want  int
	}{
		{24, false, 0, 24}, {24, true, 0, 28}, {72, false, 0, 72}, {72, true, 0, 76},
		{24, false, 5, 24}, {24, true, 5, 48}, {24, false, 6, 28}, {24, true, 6, 28}, {72, false, 6, 84},
		{24, false, 15, 64}, {72, false, 15, 128}, {72, true, 31, 128}, {24, false, 31, 128}, {72, true, 24, 100}, {72, true, 16, 136}, {72, true, 17, 144},
	} {
		if got := DataOffset(c.hlen, c.hdgst, c.pda); got != c.want {
			t.Errorf("DataOffset(%d, %v, %d) = %d, want %d", c.hlen, c.hdgst, c.pda, got, c.want)
		}
	}
	for pda := range uint8(MaxPDA + 1) {
		for _, hlen := range []int{H2CDataSize, CapsuleCmdSize} {
			if n := DataOffset(hlen, true, pda); n > MaxPDO || n < hlen+DigestSize || n%(4*int(pda)+4) != 0 {
				t.Errorf("DataOffset(%d, true, %d) = %d", hlen, pda, n)
			}
		}
	}
	// An alignment that nobody can have asked for stays within bounds.
	l := Params{HPDA: 255}.Layout(TypeC2HData)
	if l.PDO() != 128 || l.PLEN(1) != 129 || l.PLEN(0) != 24 || l.HeaderLen() != 24 || l.HDGST() || l.DDGST() {
		t.Errorf("%+v", l)
	}
}

func TestConnect(t *testing.T) {
	asked := ICReqFields{HPDA: 3, HDGST: true, DDGST: true, MAXR2T: 7}
	var req ICReq
	req.Encode(asked)
	if req.Fields() != asked {
		t.Errorf("fields %+v", req.Fields())
	}
	valid := ICRespFields{CPDA: 1, HDGST: true, MAXH2CDATA: 8192}
	var resp ICResp
	resp.Encode(valid)
	if err := resp.Check(asked); err != nil {
		t.Error(err)
	}
	var least ICResp
	least.Encode(ICRespFields{CPDA: MaxPDA, MAXH2CDATA: MinMaxH2CData})
	if err := least.Check(asked); err != nil {
		t.Errorf("bounds, digests declined: %v", err)
	}
	if got, want := resp.Params(asked), (Params{HDGST: true, HPDA: 3, CPDA: 1, MaxH2CData: 8192}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, c := range []struct {
		name   string
		mutate func(f *ICRespFields)
		asked  ICReqFields
		fes    FES
		fei    uint32
	}{
		{"PFV", func(f *ICRespFields) { f.PFV = 0x100 }, asked, FESUnsupportedParameter, 8},
		{"CPDA", func(f *ICRespFields) { f.CPDA = 32 }, asked, FESInvalidHeaderField, 10},
		{"HDGST not asked for", func(f *ICRespFields) {}, ICReqFields{DDGST: true}, FESUnsupportedParameter, 11},
		{"DDGST not asked for", func(f *ICRespFields) { f.DDGST = true }, ICReqFields{HDGST: true}, FESUnsupportedParameter, 11},
		{"MAXH2CDATA 0", func(f *ICRespFields) { f.MAXH2CDATA = 0 }, asked, FESInvalidHeaderField, 12},
		{"MAXH2CDATA 4092", func(f *ICRespFields) { f.MAXH2CDATA = 4092 }, asked, FESInvalidHeaderField, 12},
		{"MAXH2CDATA 4097", func(f *ICRespFields) { f.MAXH2CDATA = 4097 }, asked, FESInvalidHeaderField, 12},
	} {
		f := valid
		c.mutate(&f)
		resp.Encode(f)
		var e *Error
		if err := resp.Check(c.asked); !errors.As(err, &e) || e.FES != c.fes || e.FEI != c.fei || e.PDU != TypeICResp {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{TypeICReq.String(), "ICReq"}, {TypeICResp.String(), "ICResp"},
		{TypeH2CTermReq.String(), "H2CTermReq"}, {TypeC2HTermReq.String(), "C2HTermReq"},
		{TypeCapsuleCmd.String(), "CapsuleCmd"}, {TypeCapsuleResp.String(), "CapsuleResp"},
		{TypeH2CData.String(), "H2CData"}, {TypeC2HData.String(), "C2HData"}, {TypeR2T.String(), "R2T"},
		{Type(0x08).String(), "PDU type 0x08"}, {Type(0xfe).String(), "PDU type 0xfe"},
		{Host.String(), "host"}, {Controller.String(), "controller"}, {End(7).String(), "end 7"},
		{FESInvalidHeaderField.String(), "Invalid PDU Header Field"}, {FESSequenceError.Name(Host), "PDU Sequence Error"},
		{FESHeaderDigestError.String(), "Header Digest Error"}, {FESDataOutOfRange.String(), "Data Transfer Out of Range"},
		{FESDataLimitExceeded.Name(Controller), "Data Transfer Limit Exceeded"}, {FESR2TLimitExceeded.Name(Host), "R2T Limit Exceeded"},
		{FESUnsupportedParameter.Name(Controller), "Unsupported Parameter"},
		{FES(0).String(), "reserved FES 0x0000"}, {FES(7).Name(Host), "reserved FES 0x0007"}, {FES(0xffff).String(), "reserved FES 0xffff"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	for typ := range 256 {
		if known := Type(typ).Known(); known != (Type(typ).HeaderLen() != 0) || known == strings.HasPrefix(Type(typ).String(), "PDU type") {
			t.Errorf("type %#x: known %v, %v", typ, known, Type(typ))
		}
	}
}

func TestPeerError(t *testing.T) {
	for _, c := range []struct {
		from   End
		f      TermReqFields
		header []byte
		want   string
	}{
		{Controller, TermReqFields{FESInvalidHeaderField, 3}, []byte{6, 0, 24, 1}, "controller: Invalid PDU Header Field in H2CData, PDO, field at byte 3"},
		{Controller, TermReqFields{FESUnsupportedParameter, 11}, []byte{0}, "controller: Unsupported Parameter in ICReq, DGST, field at byte 11"},
		{Controller, TermReqFields{FESUnsupportedParameter, 9}, []byte{0}, "controller: Unsupported Parameter in ICReq, PFV, field at byte 9"},
		{Controller, TermReqFields{FESUnsupportedParameter, 16}, []byte{0}, "controller: Unsupported Parameter in ICReq, field at byte 16"},
		{Controller, TermReqFields{FESInvalidHeaderField, 71}, []byte{4}, "controller: Invalid PDU Header Field in CapsuleCmd, CCSQE, field at byte 71"},
		{Host, TermReqFields{FESInvalidHeaderField, 1 << 31}, []byte{9}, "host: Invalid PDU Header Field in R2T, field at byte 2147483648"},
		{Host, TermReqFields{FESInvalidHeaderField, 16}, []byte{9}, "host: Invalid PDU Header Field in R2T, R2TL, field at byte 16"},
		{Host, TermReqFields{FESInvalidHeaderField, 10}, nil, "host: Invalid PDU Header Field, field at byte 10"},
		{Host, TermReqFields{FESInvalidHeaderField, 10}, []byte{0xee}, "host: Invalid PDU Header Field in PDU type 0xee, field at byte 10"},
		{Host, TermReqFields{FESR2TLimitExceeded, 0}, []byte{9}, "host: R2T Limit Exceeded in R2T"},
		{Controller, TermReqFields{FESDataLimitExceeded, 0}, nil, "controller: Data Transfer Limit Exceeded"},
		{Controller, TermReqFields{FESHeaderDigestError, 0xdeadbeef}, []byte{4}, "controller: Header Digest Error in CapsuleCmd, digest 0xdeadbeef"},
		{Controller, TermReqFields{0xabcd, 1}, []byte{0xee}, "controller: reserved FES 0xabcd in PDU type 0xee"},
	} {
		var h TermReq
		h.Encode(c.from, c.f, len(c.header))
		e := h.Err(c.header)
		if !strings.HasSuffix(e.Error(), c.want) || e.From != c.from || e.FES != c.f.FES || e.FEI != c.f.FEI || !bytes.Equal(e.Header, c.header) {
			t.Errorf("%q, want %q", e, c.want)
		}
	}
	var h TermReq
	h.Encode(Host, TermReqFields{}, 128)
	if e := h.Err(make([]byte, 1000)); len(e.Header) != TermReqMaxData {
		t.Errorf("header of %d bytes kept", len(e.Header))
	}
}

func TestNewError(t *testing.T) {
	e := NewError(TypeR2T, FESR2TLimitExceeded, OffTTAG, "TTAG", 9, "one too many")
	if e.FEI != 0 || e.Error() != "nvme/tcp: R2T: R2T Limit Exceeded: TTAG 9 (0x9): one too many" {
		t.Errorf("%+v: %v", *e, e)
	}
	e = NewError(TypeC2HData, FESInvalidHeaderField, OffCCCID, "", 0, "")
	if e.FEI != 8 || e.Error() != "nvme/tcp: C2HData: Invalid PDU Header Field" {
		t.Errorf("%+v: %v", *e, e)
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint16(1), uint16(2), uint32(3), []byte("data"), uint8(0), true)
	f.Add(uint16(0xffff), uint16(0x8000), uint32(1<<31), make([]byte, 64), uint8(3), false)
	f.Fuzz(func(t *testing.T, cccid, ttag uint16, off uint32, data []byte, params uint8, last bool) {
		p := refParams[int(params)%len(refParams)]
		if len(data) == 0 || len(data) > 4096 || uint64(off)+uint64(len(data)) > 1<<32-1 {
			return
		}
		var flags Flags
		if last {
			flags = LastPDU
		}
		cmdL, h2cL, c2hL, r2tL := p.Layout(TypeCapsuleCmd), p.Layout(TypeH2CData), p.Layout(TypeC2HData), p.Layout(TypeR2T)
		next := func(end End, b []byte) PDU {
			pdu, err := NewReader(bytes.NewReader(b), NewReceiver(end, p, Limits{})).Next()
			if err != nil {
				t.Fatal(err)
			}
			return pdu
		}
		n := uint32(len(data))
		cmd := nvme.Command{CID: cccid, CDW10: off, CDW15: n}
		got := next(Controller, AppendCapsuleCmd(nil, &cmdL, &cmd, data))
		var back nvme.Command
		if (*CapsuleCmd)(got.Header).Command(&back); back != cmd || !bytes.Equal(got.Data, data) {
			t.Fatalf("CapsuleCmd %+v", got)
		}
		got = next(Controller, AppendH2CData(nil, &h2cL, flags, H2CDataFields{CCCID: cccid, TTAG: ttag, DATAO: off}, data))
		h := (*H2CData)(got.Header)
		if h.CCCID() != cccid || h.TTAG() != ttag || h.DATAO() != off || h.DATAL() != n || got.Flags()&^hd != flags || !bytes.Equal(got.Data, data) {
			t.Fatalf("H2CData %+v", got)
		}
		got = next(Host, AppendC2HData(nil, &c2hL, flags, C2HDataFields{CCCID: cccid, DATAO: off}, data))
		c := (*C2HData)(got.Header)
		if c.CCCID() != cccid || c.DATAO() != off || c.DATAL() != n || got.Flags()&^hd != flags || !bytes.Equal(got.Data, data) {
			t.Fatalf("C2HData %+v", got)
		}
		got = next(Host, AppendR2T(nil, &r2tL, R2TFields{cccid, ttag, off, n}))
		r := (*R2T)(got.Header)
		if r.CCCID() != cccid || r.TTAG() != ttag || r.R2TO() != off || r.R2TL() != n {
			t.Fatalf("R2T %+v", got)
		}
	})
}
