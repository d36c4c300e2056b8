package tcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// ErrPeerClosed: the controller closed the connection.
var errPeerClosed = fmt.Errorf("nvme/tcp: connection closed by the controller: %w", ErrPeerClosed)

// Sentinel errors; they come back wrapped.
var (
	// ErrPeerClosed: the controller closed the connection without a word.
	ErrPeerClosed = errors.New("end of stream")
	// ErrAuthentication: the controller wants in-band authentication or a
	// secure channel.
	ErrAuthentication = fmt.Errorf("nvme/tcp: the controller requires authentication: %w", nvme.ErrUnsupported)
)

func sendError(e sys.Errno) error    { return fmt.Errorf("nvme/tcp: send: %w", e) }
func receiveError(e sys.Errno) error { return fmt.Errorf("nvme/tcp: receive: %w", e) }

// DigestError: the controller declined a digest that was asked for.
type DigestError struct{ Header, Data bool }

// Error implements error.
func (e *DigestError) Error() string {
	var what []string
	if e.Header {
		what = append(what, "header digest")
	}
	if e.Data {
		what = append(what, "data digest")
	}
	return "nvme/tcp: the controller declined the " + strings.Join(what, " and the ")
}

// Unwrap makes the error permanent: asking again would not help.
func (e *DigestError) Unwrap() error { return nvme.ErrUnsupported }

// ConnectError is a rejected fabrics Connect command.
type ConnectError struct {
	Status nvme.Status
	// Parameter is the offending field for StatusConnectInvalidParameters, as
	// the controller named it.
	Parameter nvme.InvalidParameter

	queue uint16
}

func connectError(st nvme.Status, result uint64, queue uint16) error {
	e := &ConnectError{Status: st, queue: queue}
	if st.Code() == nvme.StatusConnectInvalidParameters {
		e.Parameter = nvme.ParseInvalidParameter(result)
	}
	return e
}

// declinesNoFlowControl tells whether a controller rejected Connect because
// the host asked to do without submission queue flow control.
func declinesNoFlowControl(err error) bool {
	const cattr = 46 // offset of CATTR in the command
	var e *ConnectError
	return errors.As(err, &e) && e.Status.Code() == nvme.StatusConnectInvalidParameters &&
		!e.Parameter.InData && e.Parameter.Offset == cattr
}

// Error implements error.
func (e *ConnectError) Error() string {
	s := "nvme/tcp: Connect rejected: " + e.Status.ErrorFor(nvme.OpFabrics)
	if e.Status.Code() == nvme.StatusConnectInvalidParameters {
		s += " (" + e.Parameter.String() + ")"
	}
	return s
}

// Unwrap returns the status: without Do Not Retry if an I/O queue was rejected
// because the controller of its admin queue is not there any more, since the
// next association will have another one.
func (e *ConnectError) Unwrap() error {
	gone := nvme.InvalidParameter{Offset: nvme.ConnectDataControllerIDOffset, InData: true}
	if e.queue != 0 && e.Status.Code() == nvme.StatusConnectInvalidParameters && e.Parameter == gone {
		return e.Status &^ nvme.StatusDNR
	}
	return e.Status
}

// protocolError gives the connection up because of a PDU whose header is at
// the start of b: the controller is told with an H2CTermReq.
func (c *conn) protocolError(err error, b []byte) {
	var pe *pdu.Error
	if errors.As(err, &pe) && c.fd >= 0 {
		n := min(len(b), pdu.Type(b[0]).HeaderLen(), pdu.TermReqMaxData)
		if n == 0 {
			n = min(len(b), pdu.CommonSize)
		}
		term := pe.AppendTermReq(nil, pdu.Host, b[:n])
		// Best effort: whole if what is queued before it goes out, too.
		if len(term) > 0 {
			for c.tx.pending() && c.flushOnce() {
			}
			if !c.tx.pending() {
				_, _ = sys.Send(c.fd, term)
				c.beginLinger()
			}
		}
	}
	c.fail(err)
}

// flushOnce sends what it can and reports whether anything went.
func (c *conn) flushOnce() bool {
	v := c.tx.iov[c.tx.first:]
	n, err := sys.Sendmsg(c.fd, v[:min(len(v), sys.MaxIovecs)])
	if err != 0 {
		return false
	}
	rest := sys.Consume(v, n)
	c.tx.first = len(c.tx.iov) - len(rest)
	return n > 0
}

// badCommand gives the connection up because of a command identifier that
// names no fitting command.
func (c *conn) badCommand(b []byte, t pdu.Type, off uint32, cid uint16) {
	c.qp.Spurious()
	c.protocolError(pdu.NewError(t, pdu.FESInvalidHeaderField, off, "CCCID", uint64(cid), "no fitting command is outstanding"), b)
}

func dataRange(off, n, got, want uint32) error {
	if off != got && off <= want {
		return pdu.NewError(pdu.TypeC2HData, pdu.FESSequenceError, 0, "DATAO", uint64(off), fmt.Sprintf("%d bytes were received", got))
	}
	return pdu.NewError(pdu.TypeC2HData, pdu.FESDataOutOfRange, 0, "DATAO", uint64(off), fmt.Sprintf("with %d bytes of data, the command reads %d", n, want))
}

func dataAfterLast(off uint32) error {
	return pdu.NewError(pdu.TypeC2HData, pdu.FESSequenceError, 0, "DATAO", uint64(off), "after the last PDU of the command")
}

func badSuccess(flowControl bool) error {
	why := "before all data was received"
	if flowControl {
		why = "though submission queue flow control is on"
	}
	return pdu.NewError(pdu.TypeC2HData, pdu.FESInvalidHeaderField, 1, "SUCCESS", 1, why)
}

func r2tRange(off, n, wanted, have uint32) error {
	why := fmt.Sprintf("with length %d, the command has %d bytes", n, have)
	if off != wanted {
		why = fmt.Sprintf("data before %d was asked for so far, and no further", wanted)
	}
	return pdu.NewError(pdu.TypeR2T, pdu.FESDataOutOfRange, 0, "R2TO", uint64(off), why)
}

func tooManyR2T(limit uint32) error {
	return pdu.NewError(pdu.TypeR2T, pdu.FESR2TLimitExceeded, 0, "", 0, fmt.Sprintf("more than %d outstanding for one command", limit))
}

func incomplete(r *nvme.Request, s *slot) error {
	got, verb := s.got, "was received"
	if r.Data.Dir == nvme.DirOut {
		got, verb = s.wanted, "was asked for"
	}
	return pdu.NewError(pdu.TypeCapsuleResp, pdu.FESSequenceError, 0, "", 0,
		fmt.Sprintf("success, but only %d of %d bytes %s", got, r.Data.Len, verb))
}

// lenient reports whether a command may succeed with less data than its buffer
// holds: all but reads, writes and compares of I/O queues, where what did not
// move is an error. What was not received reads as zeroes.
func (c *conn) lenient(r *nvme.Request) bool {
	if c.qp.ID() != 0 {
		switch r.Cmd.Opcode {
		case nvme.OpRead, nvme.OpWrite, nvme.OpCompare:
			return false
		}
	}
	if r.Data.Dir == nvme.DirIn {
		clearFrom(&r.Data, c.slots[r.Index()].got)
	}
	return true
}

// clearFrom zeroes the memory of d from byte off of its data on.
func clearFrom(d *nvme.Data, off uint32) {
	if d.Vec == nil {
		clear(d.Buf[off:d.Len])
		return
	}
	skip, left := d.Off+int(off), int(d.Len-off)
	for _, p := range d.Vec {
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		p = p[skip:]
		p = p[:min(len(p), left)]
		clear(p)
		skip, left = 0, left-len(p)
	}
}

// dataDigestError: the data of a read is not what the controller sent. That is
// not fatal for the connection: the command will complete with a status that
// says that the transfer went wrong, whatever the controller thinks of it.
func (c *conn) dataDigestError() {
	c.in.slot.damaged = true
	c.digestErrors++
}

// rarePDU takes the PDU types that do not occur per command.
func (c *conn) rarePDU(b []byte, shape pdu.Shape) bool {
	switch shape.Type() {
	case pdu.TypeICResp:
		return c.initialised((*pdu.ICResp)(b))
	case pdu.TypeC2HTermReq:
		n := pdu.TermReqSize + int(shape.Data())
		if len(b) < n {
			return false // the rest is on its way
		}
		c.fail((*pdu.TermReq)(b).Err(b[pdu.TermReqSize:n]))
		return false
	}
	c.protocolError(pdu.NewError(shape.Type(), pdu.FESInvalidHeaderField, 0, "PDU-Type", uint64(shape.Type()), "not expected"), b)
	return false
}
