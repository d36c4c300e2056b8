package pdu

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/nvme"
)

// unhex decodes hexadecimal with blanks. "00*112" stands for a byte repeated.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var out []byte
	for _, f := range strings.Fields(s) {
		n := 1
		if v, count, ok := strings.Cut(f, "*"); ok {
			f, n = v, 0
			for _, c := range count {
				n = n*10 + int(c-'0')
			}
		}
		b, err := hex.DecodeString(f)
		if err != nil {
			t.Fatalf("bad hex %q: %v", f, err)
		}
		out = append(out, bytes.Repeat(b, n)...)
	}
	return out
}

var testCommand = nvme.Command{
	Opcode: 0x02, Flags: nvme.FlagSGL, CID: 0x1234, NSID: 1,
	MPTR: 0x0807060504030201, DPTR: [2]uint64{0, 0x5a00000000001000},
	CDW10: 0xa, CDW11: 0xb, CDW12: 0xc, CDW13: 0xd, CDW14: 0xe, CDW15: 0xf,
}

const testCommandHex = "02 40 3412 01000000 00*8 0102030405060708 00*8 001000000000005a" +
	" 0a000000 0b000000 0c000000 0d000000 0e000000 0f000000"

var testCompletion = nvme.Completion{
	Result: 0x1122334455667788, SQHead: 0x0102, SQID: 0x0304, CID: 0x1234, StatusPhase: 0x4004,
}

const testCompletionHex = "8877665544332211 0201 0403 3412 0440"

// Digests in the golden bytes were computed bit by bit, independently of
// this package; see TestGoldenDigests.
var (
	plain   = Params{}
	digests = Params{HDGST: true, DDGST: true}
	padded  = Params{HPDA: 7, CPDA: 31}                           // 32 and 128 bytes
	all     = Params{HDGST: true, DDGST: true, HPDA: 2, CPDA: 15} // 12 and 64 bytes
)

var goldens = []struct {
	name   string
	params Params
	build  func(p Params) []byte
	want   string
}{
	{"ICReq", plain, func(Params) []byte {
		return AppendICReq(nil, ICReqFields{HPDA: 31, HDGST: true, MAXR2T: 0x01020304})
	}, "00 00 80 00 80000000 0000 1f 01 04030201 00*112"},
	{"ICReq/digests", digests, func(Params) []byte {
		return AppendICReq(nil, ICReqFields{PFV: 0x0102, DDGST: true})
	}, "00 00 80 00 80000000 0201 00 02 00000000 00*112"},
	{"ICResp", plain, func(Params) []byte {
		return AppendICResp(nil, ICRespFields{CPDA: 3, HDGST: true, DDGST: true, MAXH2CDATA: 0x20000})
	}, "01 00 80 00 80000000 0000 03 03 00000200 00*112"},
	{"H2CTermReq", plain, func(Params) []byte {
		return AppendTermReq(nil, Host, TermReqFields{FES: FESInvalidHeaderField, FEI: 0x04}, []byte{7, 0, 0x18, 0, 0, 0, 0, 0})
	}, "02 00 18 00 20000000 0100 04000000 00*10 07 00 18 00 00000000"},
	{"C2HTermReq", digests, func(Params) []byte {
		return AppendTermReq(nil, Controller, TermReqFields{FES: FESHeaderDigestError, FEI: 0xdeadbeef}, nil)
	}, "03 00 18 00 18000000 0300 efbeadde 00*10"},
	{"C2HTermReq/long", plain, func(Params) []byte {
		return AppendTermReq(nil, Controller, TermReqFields{FES: FESUnsupportedParameter, FEI: 8}, bytes.Repeat([]byte{0xa5}, 200))
	}, "03 00 18 00 98000000 0600 08000000 00*10 a5*128"},

	{"CapsuleCmd", plain, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, nil)
	}, "04 00 48 00 48000000 " + testCommandHex},
	{"CapsuleCmd/data", plain, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, []byte("123456789"))
	}, "04 00 48 48 51000000 " + testCommandHex + " 313233343536373839"},
	{"CapsuleCmd/digests", digests, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, nil)
	}, "04 01 48 00 4c000000 " + testCommandHex + " HHHHHHHH"},
	{"CapsuleCmd/digests data", digests, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, []byte("123456789"))
	}, "04 03 48 4c 59000000 " + testCommandHex + " HHHHHHHH 313233343536373839 839206e3"},
	{"CapsuleCmd/padded", padded, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, []byte("1234"))
	}, "04 00 48 80 84000000 " + testCommandHex + " 00*56 31323334"},
	{"CapsuleCmd/padded no data", padded, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, nil)
	}, "04 00 48 00 48000000 " + testCommandHex},
	{"CapsuleCmd/all", all, func(p Params) []byte {
		l := p.Layout(TypeCapsuleCmd)
		return AppendCapsuleCmd(nil, &l, &testCommand, []byte("123456789"))
	}, "04 03 48 80 8d000000 " + testCommandHex + " HHHHHHHH 00*52 313233343536373839 839206e3"},

	{"CapsuleResp", plain, func(p Params) []byte {
		l := p.Layout(TypeCapsuleResp)
		return AppendCapsuleResp(nil, &l, &testCompletion)
	}, "05 00 18 00 18000000 " + testCompletionHex},
	{"CapsuleResp/all", all, func(p Params) []byte {
		l := p.Layout(TypeCapsuleResp)
		return AppendCapsuleResp(nil, &l, &testCompletion)
	}, "05 01 18 00 1c000000 " + testCompletionHex + " HHHHHHHH"},

	{"H2CData", plain, func(p Params) []byte {
		l := p.Layout(TypeH2CData)
		return AppendH2CData(nil, &l, LastPDU, H2CDataFields{0x1234, 0x5678, 0x10000, 0}, []byte("123456789"))
	}, "06 04 18 18 21000000 3412 7856 00000100 09000000 00000000 313233343536373839"},
	{"H2CData/padded", padded, func(p Params) []byte {
		l := p.Layout(TypeH2CData)
		return AppendH2CData(nil, &l, 0, H2CDataFields{1, 2, 3, 0}, []byte{0xff})
	}, "06 00 18 80 81000000 0100 0200 03000000 01000000 00000000 00*104 ff"},
	{"H2CData/all", all, func(p Params) []byte {
		l := p.Layout(TypeH2CData)
		return AppendH2CData(nil, &l, LastPDU, H2CDataFields{0x1234, 0x5678, 0x10000, 0}, []byte("123456789"))
	}, "06 07 18 40 4d000000 3412 7856 00000100 09000000 00000000 HHHHHHHH 00*36 313233343536373839 839206e3"},

	{"C2HData", plain, func(p Params) []byte {
		l := p.Layout(TypeC2HData)
		return AppendC2HData(nil, &l, LastPDU|Success, C2HDataFields{0x1234, 0x10000, 0}, []byte("123456789"))
	}, "07 0c 18 18 21000000 3412 0000 00000100 09000000 00000000 313233343536373839"},
	{"C2HData/digests", digests, func(p Params) []byte {
		l := p.Layout(TypeC2HData)
		return AppendC2HData(nil, &l, 0, C2HDataFields{0xffff, 0xfffffff0, 0}, []byte("123456789"))
	}, "07 03 18 1c 29000000 ffff 0000 f0ffffff 09000000 00000000 HHHHHHHH 313233343536373839 839206e3"},
	{"C2HData/padded", padded, func(p Params) []byte {
		l := p.Layout(TypeC2HData)
		return AppendC2HData(nil, &l, LastPDU, C2HDataFields{1, 0, 0}, []byte{0xff})
	}, "07 04 18 20 21000000 0100 0000 00000000 01000000 00000000 00*8 ff"},
	{"C2HData/all", all, func(p Params) []byte {
		l := p.Layout(TypeC2HData)
		return AppendC2HData(nil, &l, LastPDU, C2HDataFields{1, 0, 0}, []byte("123456789"))
	}, "07 07 18 24 31000000 0100 0000 00000000 09000000 00000000 HHHHHHHH 00*8 313233343536373839 839206e3"},

	{"R2T", plain, func(p Params) []byte {
		l := p.Layout(TypeR2T)
		return AppendR2T(nil, &l, R2TFields{0x1234, 0x5678, 0x1000, 0x20000})
	}, "09 00 18 00 18000000 3412 7856 00100000 00000200 00000000"},
	{"R2T/all", all, func(p Params) []byte {
		l := p.Layout(TypeR2T)
		return AppendR2T(nil, &l, R2TFields{0x1234, 0x5678, 0x1000, 0x20000})
	}, "09 01 18 00 1c000000 3412 7856 00100000 00000200 00000000 HHHHHHHH"},
}

// golden returns the wanted bytes, with the header digest, spelled HHHHHHHH,
// computed by the reference.
func golden(t testing.TB, s string) []byte {
	b := unhex(t, strings.ReplaceAll(s, "HHHHHHHH", "00*4"))
	if strings.Contains(s, "HHHHHHHH") {
		hlen := int(b[2])
		d := referenceCRC32C(b[:hlen])
		copy(b[hlen:], []byte{byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)})
	}
	return b
}

func TestGolden(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			want := golden(t, g.want)
			got := g.build(g.params)
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%x\nwant\n%x", got, want)
			}
		})
	}
}

// TestGoldenRead reads every golden PDU back at the end that receives it.
func TestGoldenRead(t *testing.T) {
	for _, g := range goldens {
		b := golden(t, g.want)
		typ := Type(b[0])
		rcv := NewReceiver(typ.Receiver(), g.params, Limits{})
		if typ <= TypeICResp {
			rcv = NewConnectReceiver(typ.Receiver())
		}
		p, err := NewReader(bytes.NewReader(b), rcv).Next()
		if g.name == "ICReq/digests" {
			if err == nil {
				t.Errorf("%s: PFV other than 0 taken", g.name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", g.name, err)
			continue
		}
		end := len(b)
		if p.DDGST() {
			end -= DigestSize
		}
		if p.Type() != typ || !bytes.Equal(p.Header, b[:b[2]]) || !bytes.Equal(p.Data, b[end-int(p.Shape.Data()):end]) {
			t.Errorf("%s: read %+v", g.name, p)
		}
	}
}
