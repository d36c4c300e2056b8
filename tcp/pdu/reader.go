package pdu

import (
	"errors"
	"io"
	"slices"
)

// DefaultMaxPDU is the bound on PLEN that a Reader sets unless told otherwise.
const DefaultMaxPDU = 16 << 20

// readStep bounds how far a Reader grows its buffer ahead of what has arrived.
const readStep = 64 << 10

// PDU is one whole PDU as a Reader returns it. The slices are valid until the
// next call of Next.
type PDU struct {
	Shape
	Header []byte // without its digest; a view can be laid over it
	Data   []byte // without its digest
}

// Common returns the common header.
func (p *PDU) Common() *Common { return (*Common)(p.Header) }

// DataDigestError tells that the data of a PDU does not have the digest that
// came with it. Unlike an Error it concerns only the command.
type DataDigestError struct {
	PDU       Type
	Got, Want uint32 // received and computed
}

// Error implements error.
func (e *DataDigestError) Error() string {
	return "nvme/tcp: " + e.PDU.String() + ": data digest 0x" + hex32(e.Got) + ", computed 0x" + hex32(e.Want)
}

// ErrTooLong tells that PLEN is above the bound of the Reader.
var ErrTooLong = errors.New("nvme/tcp: PDU longer than the reader takes")

// Reader reads whole PDUs one by one from a stream, blocking, and checks them.
// It is meant for the handshake and for scripted peers; for a data path it
// copies too much.
type Reader struct {
	// Receiver checks the PDUs. It may be changed between two calls of Next,
	// as it must be after the handshake.
	Receiver *Receiver
	// MaxPDU is the bound on PLEN in bytes. 0 means DefaultMaxPDU.
	MaxPDU uint32

	src io.Reader
	buf []byte
}

// NewReader returns a Reader that reads from src and checks with rcv.
func NewReader(src io.Reader, rcv *Receiver) *Reader {
	return &Reader{Receiver: rcv, src: src}
}

// Next reads one PDU. It returns io.EOF if the stream ends between two PDUs,
// and io.ErrUnexpectedEOF if it ends within one.
//
// With an *Error, PDU.Header holds as much of the header as was read, for
// Error.AppendTermReq. With a *DataDigestError the PDU is whole, and reading
// may go on. After any other error it may not.
//
// All fields are checked except for those of an ICResp, see ICResp.Check.
func (r *Reader) Next() (PDU, error) {
	r.buf = r.buf[:0]
	if err := r.fill(CommonSize); err != nil {
		return PDU{}, err
	}
	s, err := r.Receiver.Check((*Common)(r.buf))
	if err != nil {
		return PDU{Header: r.buf}, err
	}
	h := (*Common)(r.buf)
	hlen, plen := int(h.HLEN()), h.PLEN()
	if limit := r.MaxPDU; plen > limit && (limit != 0 || plen > DefaultMaxPDU) {
		return PDU{Header: r.buf}, ErrTooLong
	}
	if err := r.fill(s.Head()); err != nil {
		return PDU{}, noEOF(err)
	}
	if err := checkHeader(r.buf, hlen, s); err != nil {
		return PDU{Header: r.buf[:hlen]}, err
	}
	if err := r.fill(int(plen)); err != nil {
		return PDU{}, noEOF(err)
	}
	p := PDU{Shape: s, Header: r.buf[:hlen:hlen]}
	if s.data == 0 {
		return p, nil
	}
	end := s.PDO() + int(s.data)
	p.Data = r.buf[s.PDO():end:end]
	if s.DDGST() {
		got, want := GetDigest(r.buf[end:]), Digest(p.Data)
		if got != want {
			return p, &DataDigestError{PDU: s.Type(), Got: got, Want: want}
		}
	}
	return p, nil
}

// checkHeader checks the header digest and the fields after the common header.
func checkHeader(b []byte, hlen int, s Shape) error {
	if s.HDGST() {
		if err := VerifyHeader(b, hlen); err != nil {
			return err
		}
	}
	switch s.Type() {
	case TypeICReq:
		return (*ICReq)(b).Check()
	case TypeH2CData:
		return (*H2CData)(b).Check(s)
	case TypeC2HData:
		return (*C2HData)(b).Check(s)
	case TypeR2T:
		return (*R2T)(b).Check()
	}
	return nil
}

// fill reads until n bytes of the PDU are in the buffer, which grows only as
// data arrives.
func (r *Reader) fill(n int) error {
	for len(r.buf) < n {
		have := len(r.buf)
		step := min(n-have, readStep)
		r.buf = slices.Grow(r.buf, step)[:have+step]
		if m, err := io.ReadFull(r.src, r.buf[have:]); err != nil {
			r.buf = r.buf[:have+m]
			if have > 0 {
				err = noEOF(err)
			}
			return err
		}
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
