package tcptest_test

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

const (
	hostNQN = "nqn.2014-08.org.example:host"
	subNQN  = "nqn.2014-08.org.example:disk"
)

// host is a plain host that does one thing at a time.
type host struct {
	t      *testing.T
	nc     *net.TCPConn
	rd     *pdu.Reader
	params pdu.Params
	cid    uint16
}

func dial(t *testing.T, s *tcptest.Server) *host {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	return &host{t: t, nc: nc.(*net.TCPConn), rd: pdu.NewReader(nc, pdu.NewConnectReceiver(pdu.Host))}
}

func (h *host) send(b []byte) {
	h.t.Helper()
	if _, err := h.nc.Write(b); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) next() pdu.PDU {
	h.t.Helper()
	p, err := h.rd.Next()
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// handshake shakes hands.
func (h *host) handshake(f pdu.ICReqFields) *host {
	h.t.Helper()
	h.send(pdu.AppendICReq(nil, f))
	p := h.next()
	resp := (*pdu.ICResp)(p.Header)
	if err := resp.Check(f); err != nil {
		h.t.Fatal(err)
	}
	h.params = resp.Params(f)
	h.rd.Receiver = pdu.NewReceiver(pdu.Host, h.params, pdu.Limits{})
	return h
}

// post sends a command with data in the capsule and returns its identifier.
func (h *host) post(cmd nvme.Command, data []byte) uint16 {
	h.t.Helper()
	h.cid++
	cmd.CID = h.cid
	if data != nil {
		cmd.SetSGL(nvme.SGLInCapsule(0, uint32(len(data))))
	}
	l := h.params.Layout(pdu.TypeCapsuleCmd)
	h.send(pdu.AppendCapsuleCmd(nil, &l, &cmd, data))
	return cmd.CID
}

// response reads the response capsule of a command.
func (h *host) response(cid uint16) *nvme.Completion {
	h.t.Helper()
	cpl := new(nvme.Completion)
	p := h.next()
	if p.Type() != pdu.TypeCapsuleResp {
		h.t.Fatalf("got %v, want a response", p.Type())
	}
	(*pdu.CapsuleResp)(p.Header).Completion(cpl)
	if cpl.CID != cid {
		h.t.Fatalf("response to command %d, want %d", cpl.CID, cid)
	}
	return cpl
}

// do sends a command and returns its response.
func (h *host) do(cmd nvme.Command, data []byte) *nvme.Completion {
	h.t.Helper()
	return h.response(h.post(cmd, data))
}

// read sends a command that brings n bytes, and returns them, how many PDUs
// they came in, and the status.
func (h *host) read(cmd nvme.Command, n uint32) (data []byte, pdus int, st nvme.Status) {
	h.t.Helper()
	cmd.SetSGL(nvme.SGLTransport(n))
	h.cid++
	cmd.CID = h.cid
	l := h.params.Layout(pdu.TypeCapsuleCmd)
	h.send(pdu.AppendCapsuleCmd(nil, &l, &cmd, nil))
	for {
		p := h.next()
		if p.Type() == pdu.TypeCapsuleResp {
			var cpl nvme.Completion
			(*pdu.CapsuleResp)(p.Header).Completion(&cpl)
			return data, pdus, cpl.Status()
		}
		c := (*pdu.C2HData)(p.Header)
		if p.Type() != pdu.TypeC2HData || c.CCCID() != cmd.CID || int(c.DATAO()) != len(data) {
			h.t.Fatalf("got %v for command %d at %d, want data for %d at %d", p.Type(), c.CCCID(), c.DATAO(), cmd.CID, len(data))
		}
		data, pdus = append(data, p.Data...), pdus+1
		if p.Flags()&pdu.Success != 0 {
			return data, pdus, nvme.StatusSuccess
		}
	}
}

// write sends a command whose data waits to be asked for, answers the R2Ts, and
// returns how many there were, and the status.
func (h *host) write(cmd nvme.Command, data []byte) (r2ts int, st nvme.Status) {
	h.t.Helper()
	cmd.SetSGL(nvme.SGLTransport(uint32(len(data))))
	h.cid++
	cmd.CID = h.cid
	l, d := h.params.Layout(pdu.TypeCapsuleCmd), h.params.Layout(pdu.TypeH2CData)
	h.send(pdu.AppendCapsuleCmd(nil, &l, &cmd, nil))
	for {
		p := h.next()
		if p.Type() == pdu.TypeCapsuleResp {
			var cpl nvme.Completion
			(*pdu.CapsuleResp)(p.Header).Completion(&cpl)
			return r2ts, cpl.Status()
		}
		r := (*pdu.R2T)(p.Header)
		if p.Type() != pdu.TypeR2T || r.CCCID() != cmd.CID {
			h.t.Fatalf("got %v for command %d, want an R2T for %d", p.Type(), r.CCCID(), cmd.CID)
		}
		r2ts++
		for off, left := r.R2TO(), r.R2TL(); left > 0; {
			n := min(left, h.params.MaxH2CData)
			left -= n
			var flags pdu.Flags
			if left == 0 {
				flags = pdu.LastPDU
			}
			f := pdu.H2CDataFields{CCCID: cmd.CID, TTAG: r.TTAG(), DATAO: off}
			h.send(pdu.AppendH2CData(nil, &d, flags, f, data[off:off+n]))
			off += n
		}
	}
}

// connect makes the connection one of queue qid.
func (h *host) connect(qid uint16, change ...func(c *nvme.ConnectCommand, d *nvme.ConnectData)) *nvme.Completion {
	h.t.Helper()
	cntlid := nvme.ControllerIDDynamic
	if qid != 0 {
		cntlid = 1
	}
	d, err := nvme.NewConnectData([16]byte{1}, cntlid, subNQN, hostNQN)
	if err != nil {
		h.t.Fatal(err)
	}
	c := nvme.ConnectCommand{QID: qid, SQSize: 31, KeepAlive: 5 * time.Second, Attributes: nvme.ConnectDisableFlowControl}
	for _, f := range change {
		f(&c, d)
	}
	raw, err := d.AppendBinary(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do(c.Command(), raw)
}

// enable enables the controller.
func (h *host) enable() *host {
	h.t.Helper()
	cc := nvme.CCFields{EN: true, IOSQES: 6, IOCQES: 4}.CC()
	if cpl := h.do(nvme.NewPropertySet(nvme.RegCC, uint64(cc)).Command(), nil); !cpl.Status().OK() {
		h.t.Fatal(cpl.Status())
	}
	return h
}

// admin returns a host on the admin queue of an enabled controller, and ioQueue
// one on an I/O queue.
func admin(t *testing.T, s *tcptest.Server) *host {
	t.Helper()
	h := dial(t, s).handshake(pdu.ICReqFields{})
	if cpl := h.connect(0); !cpl.Status().OK() {
		t.Fatal(cpl.Status())
	}
	return h.enable()
}

func ioQueue(t *testing.T, s *tcptest.Server, f pdu.ICReqFields) *host {
	t.Helper()
	h := dial(t, s).handshake(f)
	if cpl := h.connect(1); !cpl.Status().OK() {
		t.Fatal(cpl.Status())
	}
	return h
}

// recorder is a testing.TB whose failures can be recovered from.
type recorder struct{ testing.TB }

// fatal is what recorder's Fatal panics with.
type fatal struct{ text string }

// fails runs f, which is to fail its test, and returns with what.
func fails(t *testing.T, f func(tb testing.TB)) (text string) {
	t.Helper()
	defer func() {
		if x, ok := recover().(fatal); ok {
			text = x.text
		} else {
			t.Error("the test would not have failed")
		}
	}()
	f(&recorder{TB: t})
	return ""
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { panic(fatal{sprintf(format, args...)}) }

func (r *recorder) Fatal(args ...any) { panic(fatal{sprintf("%v", args)}) }

func equal(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes % .40x, want %d bytes % .40x", what, len(got), got, len(want), want)
	}
}

func wantStatus(t *testing.T, what string, got, want nvme.Status) {
	t.Helper()
	if got.Code() != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantErr checks that err holds a text, or that it is nil if there is none.
func wantErr(t *testing.T, err error, words ...string) {
	t.Helper()
	if len(words) == 0 && err != nil {
		t.Error(err)
	}
	for _, w := range words {
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(w)) {
			t.Errorf("the error is %v, want %q in it", err, w)
		}
	}
}

var errOther = errors.New("something else")
