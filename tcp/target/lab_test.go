package target_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// patience is far more than anything here takes: a test that gets there fails
// for another reason than a slow machine.
const patience = 30 * time.Second

const (
	nqn     = "nqn.2026-01.io.github.qpoll:test"
	hostNQN = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
)

var hostID = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lab is a target on pollers that the test steps, with a clock of its own.
type lab struct {
	t       testing.TB
	pollers []*poller.Poller
	target  *target.Target
	now     int64
}

// oneNamespace is a configuration with one namespace.
func oneNamespace(b backend.Backend) target.Config {
	return target.Config{Subsystems: []target.SubsystemConfig{{
		NQN: nqn, Namespaces: []target.NamespaceConfig{{Backend: b}},
	}}}
}

func newLab(t testing.TB, cfg target.Config) *lab { return newLabOn(t, cfg, 1) }

// newLabOn is newLab with several pollers.
func newLabOn(t testing.TB, cfg target.Config, pollers int) *lab {
	t.Helper()
	l := &lab{t: t, now: 1e9}
	for range pollers {
		p, err := poller.New(poller.Config{Unpinned: true})
		must(t, err)
		l.pollers = append(l.pollers, p)
	}
	var err error
	l.target, err = target.New(cfg)
	must(t, err)
	must(t, l.target.Start(l.pollers...))
	t.Cleanup(l.close)
	l.step()
	return l
}

func (l *lab) close() {
	for _, p := range l.pollers {
		must(l.t, p.Close())
	}
	must(l.t, l.target.Close())
}

// adminOf is admin, for a target whose pollers run by themselves.
func (l *lab) adminOf(t *target.Target) *host {
	return l.adminAt(t.Ports()[0], connectOptions{}, pdu.ICReqFields{})
}

// step makes one pass of all pollers, a microsecond after the one before.
func (l *lab) step() { l.advance(time.Microsecond) }

func (l *lab) advance(d time.Duration) {
	l.now += int64(d)
	for _, p := range l.pollers {
		p.Poll(l.now)
	}
}

// await steps until something is so.
func (l *lab) await(what string, so func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			l.t.Fatalf("it did not come to pass that %s", what)
		}
		l.step()
	}
}

func (l *lab) subsystem() *target.Subsystem { return l.target.Subsystem("") }

// host is the scripted end of one connection.
type host struct {
	l      *lab
	t      testing.TB
	fd     int
	reader *pdu.Reader
	params pdu.Params
	cmd    pdu.Layout
	data   pdu.Layout
	icd    uint32 // most data to put into a capsule
	cid    uint16
	ctrl   uint16
}

// dial connects, and no more.
func (l *lab) dial() *host {
	l.t.Helper()
	return l.dialPort(l.target.Ports()[0])
}

func (l *lab) dialPort(p *target.Port) *host {
	l.t.Helper()
	return l.dialAddr(p.Addr())
}

func (l *lab) dialAddr(addr netip.AddrPort) *host {
	l.t.Helper()
	fd, err := sys.Socket(sys.Family(addr.Addr()))
	must(l.t, err)
	h := &host{l: l, t: l.t, fd: fd, icd: 8192}
	l.t.Cleanup(h.close)
	if err := sys.Connect(fd, addr); err != nil && !errors.Is(err, sys.EINPROGRESS) {
		l.t.Fatal(err)
	}
	must(l.t, sys.SetNoDelay(fd, true))
	h.reader = pdu.NewReader(h, pdu.NewConnectReceiver(pdu.Host))
	return h
}

func (h *host) close() {
	if h.fd >= 0 {
		must(h.t, sys.Close(h.fd))
		h.fd = -1
	}
}

// Read implements io.Reader: it steps the target until there is something.
func (h *host) Read(b []byte) (int, error) {
	for end := time.Now().Add(patience); ; {
		n, e := sys.Recv(h.fd, b)
		switch {
		case e == 0 && n == 0:
			return 0, io.EOF
		case e == 0:
			return n, nil
		case e != sys.EAGAIN && e != unix.ENOTCONN:
			return 0, e
		}
		if time.Now().After(end) {
			return 0, errors.New("the target sends nothing")
		}
		h.l.step()
	}
}

// send sends bytes as they are.
func (h *host) send(b []byte) {
	h.t.Helper()
	for end := time.Now().Add(patience); len(b) > 0; {
		n, e := sys.Send(h.fd, b)
		if e != 0 && e != sys.EAGAIN && e != unix.ENOTCONN {
			h.t.Fatalf("send: %v", e)
		}
		b = b[n:]
		if len(b) > 0 {
			if time.Now().After(end) {
				h.t.Fatal("the target takes nothing")
			}
			h.l.step()
		}
	}
}

// next receives a PDU, which is valid until the next call.
func (h *host) next() pdu.PDU {
	h.t.Helper()
	p, err := h.reader.Next()
	if err != nil {
		h.t.Fatalf("receive: %v", err)
	}
	return p
}

// nextOf receives a PDU that has to be of a type.
func (h *host) nextOf(t pdu.Type) pdu.PDU {
	h.t.Helper()
	p := h.next()
	if p.Type() == pdu.TypeC2HTermReq && t != p.Type() {
		h.t.Fatalf("want %v, got: %v", t, (*pdu.TermReq)(p.Header).Err(p.Data))
	}
	if p.Type() != t {
		h.t.Fatalf("got %v, want %v", p.Type(), t)
	}
	return p
}

// initialise does the handshake of the transport.
func (h *host) initialise(f pdu.ICReqFields) pdu.ICResp {
	h.t.Helper()
	h.send(pdu.AppendICReq(nil, f))
	resp := *(*pdu.ICResp)(h.nextOf(pdu.TypeICResp).Header)
	must(h.t, resp.Check(f))
	h.params = resp.Params(f)
	h.reader.Receiver = pdu.NewReceiver(pdu.Host, h.params, pdu.Limits{})
	h.cmd, h.data = h.params.Layout(pdu.TypeCapsuleCmd), h.params.Layout(pdu.TypeH2CData)
	return resp
}

// capsule returns a command capsule, with data in it if there is any.
func (h *host) capsule(cmd *nvme.Command, data []byte) []byte {
	h.cid++
	cmd.CID = h.cid
	return pdu.AppendCapsuleCmd(nil, &h.cmd, cmd, data)
}

// post sends a command with in-capsule data, or one that reads n bytes.
func (h *host) post(cmd nvme.Command, data []byte, n int) uint16 {
	h.t.Helper()
	if data != nil {
		cmd.SetSGL(nvme.SGLInCapsule(0, uint32(len(data))))
	} else {
		cmd.SetSGL(nvme.SGLTransport(uint32(n)))
	}
	h.send(h.capsule(&cmd, data))
	return h.cid
}

// completion receives the response of a command that transfers nothing.
func (h *host) completion() nvme.Completion {
	h.t.Helper()
	var cpl nvme.Completion
	(*pdu.CapsuleResp)(h.nextOf(pdu.TypeCapsuleResp).Header).Completion(&cpl)
	return cpl
}

// do executes a command with in-capsule data, or without any.
func (h *host) do(cmd nvme.Command, data []byte) nvme.Completion {
	h.t.Helper()
	cid := h.post(cmd, data, 0)
	cpl := h.completion()
	if cpl.CID != cid {
		h.t.Fatalf("response to command %d, want %d", cpl.CID, cid)
	}
	return cpl
}

// in executes a command that reads n bytes.
func (h *host) in(cmd nvme.Command, n int) ([]byte, nvme.Completion) {
	h.t.Helper()
	cid := h.post(cmd, nil, n)
	return h.collect(cid, n)
}

// collect receives the data of a command, and its response.
func (h *host) collect(cid uint16, n int) ([]byte, nvme.Completion) {
	h.t.Helper()
	buf := make([]byte, 0, n)
	for {
		p := h.next()
		switch p.Type() {
		case pdu.TypeCapsuleResp:
			var cpl nvme.Completion
			(*pdu.CapsuleResp)(p.Header).Completion(&cpl)
			if cpl.CID != cid {
				h.t.Fatalf("response to command %d, want %d", cpl.CID, cid)
			}
			if cpl.Status().OK() && len(buf) != n {
				h.t.Fatalf("%d bytes of data, want %d", len(buf), n)
			}
			return buf, cpl
		case pdu.TypeC2HData:
			d := (*pdu.C2HData)(p.Header)
			if d.CCCID() != cid || int(d.DATAO()) != len(buf) || len(buf)+len(p.Data) > n {
				h.t.Fatalf("C2HData for command %d, %d bytes at %d after %d of %d", d.CCCID(), len(p.Data), d.DATAO(), len(buf), n)
			}
			buf = append(buf, p.Data...)
			if last := p.Flags()&pdu.LastPDU != 0; last != (len(buf) == n) {
				h.t.Fatalf("LAST_PDU is %v after %d of %d bytes", last, len(buf), n)
			}
			if p.Flags()&pdu.Success != 0 {
				return buf, nvme.Completion{CID: cid}
			}
		default:
			h.t.Fatalf("got %v", p.Type())
		}
	}
}

// out executes a command whose n bytes of data the target asks for.
func (h *host) out(cmd nvme.Command, data []byte) nvme.Completion {
	h.t.Helper()
	h.post(cmd, nil, len(data))
	for {
		p := h.next()
		switch p.Type() {
		case pdu.TypeCapsuleResp:
			var cpl nvme.Completion
			(*pdu.CapsuleResp)(p.Header).Completion(&cpl)
			return cpl
		case pdu.TypeR2T:
			r := (*pdu.R2T)(p.Header)
			must(h.t, r.Check())
			h.answer(r.CCCID(), r.TTAG(), r.R2TO(), data[r.R2TO():][:r.R2TL()])
		default:
			h.t.Fatalf("got %v", p.Type())
		}
	}
}

// answer sends the data of an R2T, in as many PDUs as it takes.
func (h *host) answer(cid, tag uint16, off uint32, data []byte) {
	h.t.Helper()
	for len(data) > 0 {
		n := min(len(data), int(h.params.MaxH2CData))
		flags := pdu.Flags(0)
		if n == len(data) {
			flags = pdu.LastPDU
		}
		h.send(h.h2c(flags, cid, tag, off, data[:n]))
		data, off = data[n:], off+uint32(n)
	}
}

func (h *host) h2c(flags pdu.Flags, cid, tag uint16, off uint32, data []byte) []byte {
	return pdu.AppendH2CData(nil, &h.data, flags, pdu.H2CDataFields{CCCID: cid, TTAG: tag, DATAO: off}, data)
}

// connectOptions are what a Connect command says; the zero value is an admin
// queue of the test's subsystem.
type connectOptions struct {
	nqn, host   string
	id          [16]byte
	controller  uint16
	qid, sqSize uint16
	flags       nvme.ConnectAttributes
	kato        time.Duration
}

func (o connectOptions) fill() connectOptions {
	if o.nqn == "" {
		o.nqn = nqn
	}
	if o.host == "" {
		o.host = hostNQN
	}
	if o.id == [16]byte{} {
		o.id = hostID
	}
	if o.controller == 0 {
		o.controller = nvme.ControllerIDDynamic
	}
	if o.sqSize == 0 {
		o.sqSize = 31
	}
	return o
}

// connect sends a Connect command.
func (h *host) connect(o connectOptions) nvme.Completion {
	h.t.Helper()
	o = o.fill()
	d, err := nvme.NewConnectData(o.id, o.controller, o.nqn, o.host)
	must(h.t, err)
	raw, err := d.AppendBinary(nil)
	must(h.t, err)
	cmd := nvme.ConnectCommand{QID: o.qid, SQSize: o.sqSize, Attributes: o.flags, KeepAlive: o.kato}
	return h.do(cmd.Command(), raw)
}

// ok fails the test unless the command has succeeded.
func (h *host) ok(cpl nvme.Completion) nvme.Completion {
	h.t.Helper()
	if s := cpl.Status(); !s.OK() {
		h.t.Fatalf("status %v", s)
	}
	return cpl
}

// is fails the test unless the command has failed with a status.
func (h *host) is(cpl nvme.Completion, want nvme.Status) nvme.Completion {
	h.t.Helper()
	if got := cpl.Status(); got != want {
		h.t.Errorf("status %v, want %v", got, want)
	}
	return cpl
}

// setCC sets the controller configuration.
func (h *host) setCC(cc nvme.CC) {
	h.t.Helper()
	h.ok(h.do(nvme.NewPropertySet(nvme.RegCC, uint64(cc)).Command(), nil))
}

// property reads a property.
func (h *host) property(offset uint32) uint64 {
	h.t.Helper()
	return h.ok(h.do(nvme.NewPropertyGet(offset).Command(), nil)).Result
}

var enabled = nvme.CCFields{EN: true, IOSQES: 6, IOCQES: 4}.CC()

// admin connects an admin queue and enables its controller.
func (l *lab) admin(o connectOptions) *host {
	return l.adminAt(l.target.Ports()[0], o, pdu.ICReqFields{})
}

func (l *lab) adminAt(p *target.Port, o connectOptions, f pdu.ICReqFields) *host {
	l.t.Helper()
	h := l.dialPort(p)
	h.initialise(f)
	h.ctrl = nvme.ParseConnectResponse(h.ok(h.connect(o)).Result).ControllerID
	h.setCC(enabled)
	return h
}

// queue connects an I/O queue of the controller of an admin queue.
func (h *host) queue(o connectOptions, f pdu.ICReqFields) *host {
	h.t.Helper()
	q := h.l.dial()
	q.initialise(f)
	if o.qid == 0 {
		o.qid = 1
	}
	o.controller = h.ctrl
	q.ctrl = h.ctrl
	q.ok(q.connect(o))
	// The queue may move to another poller now.
	for range 4 {
		h.l.step()
	}
	return q
}

// io connects an admin queue and an I/O queue.
func (l *lab) io(o connectOptions, f pdu.ICReqFields) (admin, q *host) {
	l.t.Helper()
	admin = l.admin(connectOptions{})
	return admin, admin.queue(o, f)
}

func read(lba uint64, blocks uint32) nvme.Command { return rw(nvme.OpRead, lba, blocks) }

func write(lba uint64, blocks uint32) nvme.Command { return rw(nvme.OpWrite, lba, blocks) }

func rw(op nvme.Opcode, lba uint64, blocks uint32) nvme.Command {
	return nvme.Command{Opcode: op, NSID: 1, CDW10: uint32(lba), CDW11: uint32(lba >> 32), CDW12: blocks - 1}
}

// pattern is data that tells where it belongs.
func pattern(seed byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}

// same fails the test unless two pieces of data are the same.
func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: differs at byte %d of %d: %#x, want %#x", what, i, len(want), got[i], want[i])
		}
	}
	t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
}

// terminated receives the TermReq with which the target gives up the
// connection, and the end of the stream behind it.
func (h *host) terminated() *pdu.PeerError {
	h.t.Helper()
	p := h.nextOf(pdu.TypeC2HTermReq)
	e := (*pdu.TermReq)(p.Header).Err(p.Data)
	h.closed()
	return e
}

// closed fails the test unless the target ends the connection without a word.
func (h *host) closed() {
	h.t.Helper()
	var b [1]byte
	n, err := h.Read(b[:])
	if n != 0 || !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		h.t.Fatalf("%d bytes, %v, want the end of the connection", n, err)
	}
}

func mustAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
