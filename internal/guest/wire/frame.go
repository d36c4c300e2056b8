package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind tells what a frame carries.
type Kind uint8

// The kinds of frame. See the package comment for their order.
const (
	KindRequest Kind = iota + 1 // JSON of a Request
	KindResult                  // JSON of a Result; the last frame of a stream
	KindData                    // bytes: standard input or output, file content
	KindStderr                  // bytes of standard error
	KindEOF                     // end of the bytes that the host sends; no payload
	KindSignal                  // one byte: a signal number for the process group
	kindEnd
)

// MaxPayload bounds the payload of a frame, in bytes.
const MaxPayload = 1 << 20

// MaxData is the payload, in bytes, that senders of file content use at most,
// so that a frame becomes one write(2) call on the other side.
const MaxData = 64 << 10

const headerLen = 5

// Errors of the frame decoder.
var (
	ErrKind     = errors.New("wire: unknown frame kind")
	ErrTooLarge = errors.New("wire: frame payload too large")
)

// WriteFrame writes one frame in a single Write call.
func WriteFrame(w io.Writer, k Kind, payload []byte) error {
	if len(payload) > MaxPayload {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(payload))
	}
	b := make([]byte, headerLen, headerLen+len(payload))
	b[0] = byte(k)
	binary.LittleEndian.PutUint32(b[1:], uint32(len(payload)))
	_, err := w.Write(append(b, payload...))
	return err
}

// ReadFrame reads one frame. The payload is valid until buf is used again;
// it aliases buf when buf has room for it. At a clean end it returns io.EOF,
// in the middle of a frame io.ErrUnexpectedEOF.
func ReadFrame(r io.Reader, buf []byte) (Kind, []byte, error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	k := Kind(h[0])
	if k == 0 || k >= kindEnd {
		return 0, nil, fmt.Errorf("%w: %d", ErrKind, h[0])
	}
	n := binary.LittleEndian.Uint32(h[1:])
	if n > MaxPayload {
		return 0, nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, n)
	}
	if uint32(cap(buf)) < n {
		buf = make([]byte, n)
	}
	p := buf[:n]
	if _, err := io.ReadFull(r, p); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return k, p, nil
}

// WriteJSON writes v as the payload of one frame.
func WriteJSON(w io.Writer, k Kind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("wire: encode: %w", err)
	}
	return WriteFrame(w, k, b)
}
