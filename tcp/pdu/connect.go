package pdu

import "encoding/binary"

// ICReq is a view of the header of an Initialize Connection Request.
type ICReq [ICReqSize]byte

// ICReqFields are the fields of an ICReq. The zero value asks for dword
// alignment, no digests, and one outstanding R2T per command.
type ICReqFields struct {
	PFV    uint16 // PDU format version: 0
	HPDA   uint8  // alignment of data to the host, dwords, 0's based, up to MaxPDA
	HDGST  bool   // ask for header digests
	DDGST  bool   // ask for data digests
	MAXR2T uint32 // outstanding R2Ts per command that the host takes, 0's based
}

// Offsets of the fields of ICReq and ICResp that can be wrong, for FEI.
const (
	offPFV        = 8
	offPDA        = 10
	offDGST       = 11
	offMAXH2CDATA = 12
)

// Bits of DGST.
const (
	dgstHDGST = 1 << 0
	dgstDDGST = 1 << 1
)

func dgstBits(h, d bool) (b uint8) {
	if h {
		b |= dgstHDGST
	}
	if d {
		b |= dgstDDGST
	}
	return b
}

// Encode writes the whole header.
func (h *ICReq) Encode(f ICReqFields) {
	clear(h[:])
	h.Common().put(head(TypeICReq, 0, ICReqSize, 0), ICReqSize)
	binary.LittleEndian.PutUint16(h[8:], f.PFV)
	h[10] = f.HPDA
	h[11] = dgstBits(f.HDGST, f.DDGST)
	binary.LittleEndian.PutUint32(h[12:], f.MAXR2T)
}

// Common returns the common header.
func (h *ICReq) Common() *Common { return (*Common)(h[:]) }

// PFV returns the PDU format version, bytes 9:8.
func (h *ICReq) PFV() uint16 { return binary.LittleEndian.Uint16(h[8:]) }

// HPDA returns the alignment of data to the host in dwords, 0's based, byte 10.
func (h *ICReq) HPDA() uint8 { return h[10] }

// HDGST reports whether header digests are asked for, byte 11 bit 0.
func (h *ICReq) HDGST() bool { return h[11]&dgstHDGST != 0 }

// DDGST reports whether data digests are asked for, byte 11 bit 1.
func (h *ICReq) DDGST() bool { return h[11]&dgstDDGST != 0 }

// MAXR2T returns how many R2Ts the host takes per command, 0's based, bytes
// 15:12.
func (h *ICReq) MAXR2T() uint32 { return binary.LittleEndian.Uint32(h[12:]) }

// Check checks the fields after the common header. The error is an *Error.
func (h *ICReq) Check() error {
	if h.PFV() != 0 {
		return unsupported(TypeICReq, offPFV, "PFV", uint64(h.PFV()), "not 0")
	}
	if h.HPDA() > MaxPDA {
		return invalid(TypeICReq, offPDA, "HPDA", uint64(h.HPDA()), "above 31")
	}
	return nil
}

// ICResp is a view of the header of an Initialize Connection Response.
type ICResp [ICRespSize]byte

// ICRespFields are the fields of an ICResp.
type ICRespFields struct {
	PFV        uint16 // PDU format version: 0
	CPDA       uint8  // alignment of data to the controller, dwords, 0's based, up to MaxPDA
	HDGST      bool   // header digests are on
	DDGST      bool   // data digests are on
	MAXH2CDATA uint32 // most data in one H2CData, bytes: a multiple of 4, at least MinMaxH2CData
}

// Encode writes the whole header.
func (h *ICResp) Encode(f ICRespFields) {
	clear(h[:])
	h.Common().put(head(TypeICResp, 0, ICRespSize, 0), ICRespSize)
	binary.LittleEndian.PutUint16(h[8:], f.PFV)
	h[10] = f.CPDA
	h[11] = dgstBits(f.HDGST, f.DDGST)
	binary.LittleEndian.PutUint32(h[12:], f.MAXH2CDATA)
}

// Common returns the common header.
func (h *ICResp) Common() *Common { return (*Common)(h[:]) }

// PFV returns the PDU format version, bytes 9:8.
func (h *ICResp) PFV() uint16 { return binary.LittleEndian.Uint16(h[8:]) }

// CPDA returns the alignment of data to the controller in dwords, 0's based,
// byte 10.
func (h *ICResp) CPDA() uint8 { return h[10] }

// HDGST reports whether header digests are on, byte 11 bit 0.
func (h *ICResp) HDGST() bool { return h[11]&dgstHDGST != 0 }

// DDGST reports whether data digests are on, byte 11 bit 1.
func (h *ICResp) DDGST() bool { return h[11]&dgstDDGST != 0 }

// MAXH2CDATA returns the most data that one H2CData may carry, in bytes, bytes
// 15:12.
func (h *ICResp) MAXH2CDATA() uint32 { return binary.LittleEndian.Uint32(h[12:]) }

// Check checks the fields after the common header against the request that
// this is the response to: a digest that was not asked for must not be on. A
// digest that was asked for and declined is no error here. The error is an
// *Error.
func (h *ICResp) Check(req ICReqFields) error {
	if h.PFV() != 0 {
		return unsupported(TypeICResp, offPFV, "PFV", uint64(h.PFV()), "not 0")
	}
	if h.CPDA() > MaxPDA {
		return invalid(TypeICResp, offPDA, "CPDA", uint64(h.CPDA()), "above 31")
	}
	if h.HDGST() && !req.HDGST || h.DDGST() && !req.DDGST {
		return unsupported(TypeICResp, offDGST, "DGST", uint64(h[11]), "digest on that was not asked for")
	}
	if m := h.MAXH2CDATA(); m < MinMaxH2CData || m%4 != 0 {
		return invalid(TypeICResp, offMAXH2CDATA, "MAXH2CDATA", uint64(m), "below 4096 or not a multiple of 4")
	}
	return nil
}

// Params returns what the response and the request that it answers settle.
// Both ends come to the same value.
func (h *ICResp) Params(req ICReqFields) Params {
	return Params{
		HDGST:      h.HDGST(),
		DDGST:      h.DDGST(),
		HPDA:       req.HPDA,
		CPDA:       h.CPDA(),
		MaxH2CData: h.MAXH2CDATA(),
	}
}

// Fields returns the fields of the request.
func (h *ICReq) Fields() ICReqFields {
	return ICReqFields{
		PFV: h.PFV(), HPDA: h.HPDA(), HDGST: h.HDGST(), DDGST: h.DDGST(), MAXR2T: h.MAXR2T(),
	}
}
