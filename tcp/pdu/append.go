package pdu

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// The Append functions append one whole PDU, with digests and padding as the
// layout has them, to b and return the extended slice. Those that take data
// copy it, and take its length for the length fields.

// AppendICReq appends an ICReq.
func AppendICReq(b []byte, f ICReqFields) []byte {
	b, p := grow(b, ICReqSize)
	(*ICReq)(p).Encode(f)
	return b
}

// AppendICResp appends an ICResp.
func AppendICResp(b []byte, f ICRespFields) []byte {
	b, p := grow(b, ICRespSize)
	(*ICResp)(p).Encode(f)
	return b
}

// AppendTermReq appends the TermReq that end from sends about a PDU with the
// given header, of which TermReqMaxData bytes go with it at most.
func AppendTermReq(b []byte, from End, f TermReqFields, header []byte) []byte {
	header = header[:min(len(header), TermReqMaxData)]
	b, p := grow(b, TermReqSize+len(header))
	(*TermReq)(p).Encode(from, f, len(header))
	copy(p[TermReqSize:], header)
	return b
}

// AppendCapsuleCmd appends a command capsule with in-capsule data, which may
// be empty. l is the layout for TypeCapsuleCmd.
func AppendCapsuleCmd(b []byte, l *Layout, cmd *nvme.Command, data []byte) []byte {
	b, p := grow(b, int(l.PLEN(uint32(len(data)))))
	(*CapsuleCmd)(p).Encode(l, cmd, uint32(len(data)))
	if len(data) == 0 {
		l.Finish(p, false)
		return b
	}
	l.finishData(p, data)
	return b
}

// AppendCapsuleResp appends a response capsule. l is the layout for
// TypeCapsuleResp.
func AppendCapsuleResp(b []byte, l *Layout, cpl *nvme.Completion) []byte {
	b, p := grow(b, l.HeaderLen())
	(*CapsuleResp)(p).Encode(l, cpl)
	l.Finish(p, false)
	return b
}

// AppendH2CData appends an H2CData. l is the layout for TypeH2CData.
func AppendH2CData(b []byte, l *Layout, flags Flags, f H2CDataFields, data []byte) []byte {
	b, p := grow(b, int(l.over)+len(data))
	f.DATAL = uint32(len(data))
	(*H2CData)(p).Encode(l, flags, f)
	l.finishData(p, data)
	return b
}

// AppendC2HData appends a C2HData. l is the layout for TypeC2HData.
func AppendC2HData(b []byte, l *Layout, flags Flags, f C2HDataFields, data []byte) []byte {
	b, p := grow(b, int(l.over)+len(data))
	f.DATAL = uint32(len(data))
	(*C2HData)(p).Encode(l, flags, f)
	l.finishData(p, data)
	return b
}

// AppendR2T appends an R2T. l is the layout for TypeR2T.
func AppendR2T(b []byte, l *Layout, f R2TFields) []byte {
	b, p := grow(b, l.HeaderLen())
	(*R2T)(p).Encode(l, f)
	l.Finish(p, false)
	return b
}

// Reseal computes the digests of the one PDU in b anew, after a change to its
// header or data. It goes by FLAGS, HLEN and PDO as they stand, and takes the
// data to end where b does. Digests that have no room are left out.
func Reseal(b []byte) {
	if len(b) < CommonSize {
		return
	}
	h := (*Common)(b)
	if hlen := int(h.HLEN()); h.Flags()&HDGSTF != 0 && hlen+DigestSize <= len(b) {
		PutDigest(b[hlen:], Digest(b[:hlen]))
	}
	pdo, end := int(h.PDO()), len(b)-DigestSize
	if h.Flags()&DDGSTF != 0 && pdo > 0 && pdo <= end {
		PutDigest(b[end:], Digest(b[pdo:end]))
	}
}

// finishData completes the whole PDU p behind its encoded header.
func (l *Layout) finishData(p, data []byte) {
	n := l.Finish(p, true)
	n += copy(p[n:], data)
	if l.DDGST() {
		PutDigest(p[n:], Digest(data))
	}
}

// grow extends b by n bytes and also returns those n bytes.
func grow(b []byte, n int) (all, added []byte) {
	all = slices.Grow(b, n)[:len(b)+n]
	return all, all[len(b):]
}
