package tcptest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

var sprintf = fmt.Sprintf

// start starts a server outside of what fails a test.
func start(t *testing.T, script tcptest.Script, cfg *tcptest.Config) *tcptest.Server {
	t.Helper()
	s, err := tcptest.Start(script, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ended waits for the script of a connection to end.
type ended chan struct{}

func (e ended) script(s tcptest.Script) tcptest.Script {
	return func(c *tcptest.Conn) {
		defer close(e)
		s(c)
	}
}

// A script that plays to the end leaves no error behind.
func TestScript(t *testing.T) {
	s := start(t, func(c *tcptest.Conn) {
		if req := c.Handshake(pdu.ICRespFields{CPDA: 3, HDGST: true, DDGST: true}); req.HPDA != 7 || c.ICReq() != req {
			c.Fail(fmt.Errorf("ICReq %+v", req))
		}
		if p := c.Params(); p.CPDA != 3 || p.HPDA != 7 || !p.HDGST || !p.DDGST || p.MaxH2CData != 128<<10 {
			c.Fail(fmt.Errorf("parameters %+v", p))
		}
		cc := c.AcceptConnect(5)
		if cc.QID != 2 || cc.SQSize != 31 {
			c.Fail(fmt.Errorf("connect %+v", cc))
		}
		r := c.ExpectCommand(nvme.OpFlush, tcptest.CommandIs(func(cmd *nvme.Command) bool { return cmd.NSID == 9 }), tcptest.DataLen(0))
		r.Complete(nvme.StatusWriteFault, 77)
		c.ExpectTermReq(pdu.FESHeaderDigestError, 0x1234)
	}, nil)
	h := dial(t, s).handshake(pdu.ICReqFields{HPDA: 7, HDGST: true, DDGST: true})
	cpl := h.connect(2)
	if resp := nvme.ParseConnectResponse(cpl.Result); resp.ControllerID != 5 || cpl.SQHead != nvme.SQHeadNoFlowControl {
		t.Errorf("Connect response %+v", cpl)
	}
	if cpl = h.do(nvme.Command{Opcode: nvme.OpFlush, NSID: 9}, nil); cpl.Status() != nvme.StatusWriteFault || cpl.Result != 77 {
		t.Errorf("response %+v", cpl)
	}
	h.send(pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{FES: pdu.FESHeaderDigestError, FEI: 0x1234}, nil))
	h.nc.Close()
	wantErr(t, s.Close())
}

// What a script waits for in vain is an error of the server, and ends the
// script there.
func TestScriptFails(t *testing.T) {
	flush := nvme.Command{Opcode: nvme.OpFlush}
	tests := []struct {
		name   string
		script func(c *tcptest.Conn)
		host   func(h *host)
		words  []string
	}{
		{"type", func(c *tcptest.Conn) { c.Expect(pdu.TypeH2CData) }, func(h *host) { h.post(flush, nil) }, []string{"got CapsuleCmd, want H2CData"}},
		{"opcode", func(c *tcptest.Conn) { c.ExpectCommand(nvme.OpRead) }, func(h *host) { h.post(flush, nil) }, []string{"opcode 0x0, want 0x2"}},
		{"predicate", func(c *tcptest.Conn) {
			c.ExpectCommand(nvme.OpFlush, tcptest.CommandIs(func(cmd *nvme.Command) bool { return cmd.NSID == 1 }))
		}, func(h *host) { h.post(flush, nil) }, []string{"not as expected"}},
		{"check", func(c *tcptest.Conn) {
			c.Expect(pdu.TypeCapsuleCmd, func(*pdu.PDU) error { return errOther })
		}, func(h *host) { h.post(flush, nil) }, []string{errOther.Error()}},
		{"length", func(c *tcptest.Conn) { c.Expect(pdu.TypeCapsuleCmd, tcptest.DataLen(4)) }, func(h *host) { h.post(flush, make([]byte, 8)) }, []string{"8 bytes of data, want 4"}},
		{"data length", func(c *tcptest.Conn) { c.Expect(pdu.TypeCapsuleCmd, tcptest.Data([]byte{1})) }, func(h *host) { h.post(flush, make([]byte, 8)) }, []string{"8 bytes of data, want 1"}},
		{"data", func(c *tcptest.Conn) { c.Expect(pdu.TypeCapsuleCmd, tcptest.Data([]byte{0, 0, 1, 0})) }, func(h *host) { h.post(flush, make([]byte, 4)) }, []string{"byte 2 of 4", "want 0x01"}},
		{"end", func(c *tcptest.Conn) { c.Expect(pdu.TypeCapsuleCmd) }, func(h *host) { h.nc.Close() }, []string{"waiting for CapsuleCmd", "EOF"}},
		{"no end", func(c *tcptest.Conn) { c.ExpectEnd() }, func(h *host) { h.post(flush, nil) }, []string{"got CapsuleCmd, want the end"}},
		{"no answer", func(c *tcptest.Conn) { c.Expect(pdu.TypeCapsuleCmd) }, func(*host) {}, []string{"waiting for CapsuleCmd", "timeout"}},
		{"malformed", func(c *tcptest.Conn) { c.Expect(pdu.TypeCapsuleCmd) }, func(h *host) { h.send(make([]byte, 128)) }, []string{"Sequence Error"}},
		{"status", func(c *tcptest.Conn) { c.ExpectTermReq(pdu.FESDataOutOfRange, 0) }, func(h *host) {
			h.send(pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{FES: pdu.FESSequenceError}, nil))
		}, []string{"FES 0x2", "want 0x4"}},
		{"no Connect", func(c *tcptest.Conn) { c.AcceptConnect(1) }, func(h *host) { h.post(nvme.DisconnectCommand(), make([]byte, 1024)) }, []string{"fabrics type"}},
		{"on purpose", func(c *tcptest.Conn) { c.Fail(errOther) }, func(*host) {}, []string{errOther.Error()}},
		{"H2CData", func(c *tcptest.Conn) { c.Expect(pdu.TypeH2CData, tcptest.H2C(1, 2, 0, 4, true)) }, func(h *host) {
			l := h.params.Layout(pdu.TypeH2CData)
			h.send(pdu.AppendH2CData(nil, &l, pdu.LastPDU, pdu.H2CDataFields{CCCID: 1, TTAG: 3}, make([]byte, 4)))
		}, []string{"TTAG:3", "TTAG:2"}},
		{"LAST_PDU", func(c *tcptest.Conn) { c.Expect(pdu.TypeH2CData, tcptest.H2C(1, 2, 0, 4, true)) }, func(h *host) {
			l := h.params.Layout(pdu.TypeH2CData)
			h.send(pdu.AppendH2CData(nil, &l, 0, pdu.H2CDataFields{CCCID: 1, TTAG: 2}, make([]byte, 4)))
		}, []string{"LAST_PDU false, want true"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := make(ended)
			s := start(t, e.script(func(c *tcptest.Conn) {
				c.Handshake(pdu.ICRespFields{})
				tt.script(c)
				t.Error("the script went on")
			}), &tcptest.Config{Timeout: 300 * time.Millisecond})
			h := dial(t, s).handshake(pdu.ICReqFields{})
			tt.host(h)
			<-e
			wantErr(t, s.Err(), append(tt.words, "connection 0")...)
			wantErr(t, s.Close(), tt.words...)
		})
	}
}

// A script that is under way when the server is closed, or its connections are
// dropped, has not failed.
func TestCloseIsNoFailure(t *testing.T) {
	waits := map[string]func(c *tcptest.Conn){
		"Expect": func(c *tcptest.Conn) { c.Expect(pdu.TypeICReq) },
		"Stall":  func(c *tcptest.Conn) { c.Stall() },
		"Drain":  func(c *tcptest.Conn) { c.Drain() },
		"Delay":  func(c *tcptest.Conn) { c.Delay(time.Hour) },
		"Send": func(c *tcptest.Conn) {
			for {
				c.Send(make([]byte, 1<<20))
			}
		},
	}
	for name, wait := range waits {
		for _, drop := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,drop=%v", name, drop), func(t *testing.T) {
				began := make(chan struct{})
				s := start(t, func(c *tcptest.Conn) {
					close(began)
					wait(c)
				}, nil)
				h := dial(t, s)
				<-began
				if drop {
					s.Drop()
					if _, err := io.Copy(io.Discard, h.nc); !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("dropped with %v, want a reset", err)
					}
				}
				wantErr(t, s.Close())
			})
		}
	}
}

// Bytes go out whole, split, one by one, in chunks; all arrive.
func TestSendingInPieces(t *testing.T) {
	b := make([]byte, 100)
	for i := range b {
		b[i] = byte(i)
	}
	ways := map[string]struct {
		chunks int // of AfterChunk
		send   func(c *tcptest.Conn)
	}{
		"whole":     {1, func(c *tcptest.Conn) { c.Send(b) }},
		"two":       {1, func(c *tcptest.Conn) { c.Send(b[:30], nil, b[30:]) }},
		"split":     {3, func(c *tcptest.Conn) { c.SendSplit(b, 0, 1, 1, 50, 100, 200) }},
		"not split": {1, func(c *tcptest.Conn) { c.SendSplit(b) }},
		"dribble":   {100, func(c *tcptest.Conn) { c.Dribble(b) }},
		"chunks": {15, func(c *tcptest.Conn) {
			c.Chunk = 7
			c.Send(b)
		}},
		"pause": {2, func(c *tcptest.Conn) {
			c.Chunk, c.Pause = 50, time.Millisecond
			c.Send(b)
		}},
		"Write": {1, func(c *tcptest.Conn) {
			if n, err := c.Write(b); n != len(b) || err != nil {
				t.Error(n, err)
			}
		}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			chunks := 0
			s := start(t, func(c *tcptest.Conn) {
				c.AfterChunk = func() { chunks++ }
				way.send(c)
			}, nil)
			h := dial(t, s)
			got, err := io.ReadAll(h.nc)
			if err != nil {
				t.Error(err)
			}
			equal(t, "received", got, b)
			h.nc.Close()
			wantErr(t, s.Close())
			if chunks != way.chunks {
				t.Errorf("%d pieces, want %d", chunks, way.chunks)
			}
		})
	}
}

// The ends that a connection can come to.
func TestEndings(t *testing.T) {
	t.Run("Close", func(t *testing.T) { // with something unread, which would reset it
		s := start(t, func(c *tcptest.Conn) {
			c.Send([]byte("last words"))
			c.Close()
		}, nil)
		h := dial(t, s)
		h.send(make([]byte, 1000))
		got, err := io.ReadAll(h.nc)
		if string(got) != "last words" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		h.nc.Close()
		wantErr(t, s.Close())
	})
	t.Run("CloseWrite", func(t *testing.T) {
		s := start(t, func(c *tcptest.Conn) {
			c.CloseWrite()
			c.Expect(pdu.TypeICReq)
			c.ExpectEnd()
		}, nil)
		h := dial(t, s)
		if got, err := io.ReadAll(h.nc); len(got) != 0 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		h.send(pdu.AppendICReq(nil, pdu.ICReqFields{}))
		h.nc.Close()
		wantErr(t, s.Close())
	})
	t.Run("Reset", func(t *testing.T) {
		s := start(t, func(c *tcptest.Conn) {
			c.ExpectICReq()
			c.Reset()
		}, nil)
		h := dial(t, s)
		h.send(pdu.AppendICReq(nil, pdu.ICReqFields{}))
		if _, err := io.ReadAll(h.nc); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
		wantErr(t, s.Close())
	})
	t.Run("Ended", func(t *testing.T) {
		conns := make(chan *tcptest.Conn, 1)
		s := start(t, func(c *tcptest.Conn) { conns <- c }, nil)
		h := dial(t, s)
		c := <-conns
		h.nc.Close()
		<-c.Ended()
		wantErr(t, s.Close())
	})
}

// Damage is where it should be, and nowhere else.
func TestCorrupt(t *testing.T) {
	type damage func(b []byte) []byte
	s := start(t, func(c *tcptest.Conn) {
		c.Handshake(pdu.ICRespFields{HDGST: true, DDGST: true})
		for _, f := range []damage{tcptest.CorruptHeaderDigest, tcptest.CorruptDataDigest, tcptest.CorruptData} {
			b := c.C2HData(pdu.LastPDU, 1, 0, make([]byte, 64))
			was := string(b)
			d := f(b)
			if string(b) != was || string(d) == was || len(d) != len(b) {
				t.Error("not one change in a copy")
			}
			c.Expect(pdu.TypeCapsuleCmd)
			c.Send(d)
		}
		c.Drain()
	}, nil)
	wants := []func(err error) bool{
		func(err error) bool {
			e := new(pdu.Error)
			return errors.As(err, &e) && e.FES == pdu.FESHeaderDigestError
		},
		func(err error) bool { e := new(pdu.DataDigestError); return errors.As(err, &e) },
		func(err error) bool { e := new(pdu.DataDigestError); return errors.As(err, &e) },
	}
	for i := len(wants) - 1; i >= 0; i-- { // the connection ends with the first one
		h := dial(t, start(t, func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{HDGST: true, DDGST: true})
			f := []damage{tcptest.CorruptHeaderDigest, tcptest.CorruptDataDigest, tcptest.CorruptData}[i]
			c.Send(f(c.C2HData(pdu.LastPDU, 1, 0, make([]byte, 64))))
		}, nil)).handshake(pdu.ICReqFields{HDGST: true, DDGST: true})
		if _, err := h.rd.Next(); !wants[i](err) {
			t.Errorf("damage %d: %v", i, err)
		}
	}
	h := dial(t, s).handshake(pdu.ICReqFields{HDGST: true, DDGST: true})
	for range wants {
		h.post(nvme.Command{Opcode: nvme.OpFlush}, nil)
	}
	h.nc.Close()
	wantErr(t, s.Close())
}

// PDUs that a script builds are those that a host expects.
func TestBuilders(t *testing.T) {
	s := start(t, func(c *tcptest.Conn) {
		c.SetParams(pdu.Params{HDGST: true, HPDA: 3})
		c.Send(c.CapsuleResp(&nvme.Completion{CID: 3}), c.R2T(4, 5, 6, 8), c.C2HData(pdu.LastPDU, 9, 10, []byte{1, 2, 3, 4}))
		c.Send(tcptest.TermReq(pdu.FESDataLimitExceeded, 0, []byte{4, 1, 72, 0, 0, 0, 0, 0}))
	}, nil)
	h := dial(t, s)
	h.rd.Receiver = pdu.NewReceiver(pdu.Host, pdu.Params{HDGST: true, HPDA: 3}, pdu.Limits{})
	if got := h.response(3); got.CID != 3 {
		t.Error(got)
	}
	p := h.next()
	if r := (*pdu.R2T)(p.Header); r.CCCID() != 4 || r.TTAG() != 5 || r.R2TO() != 6 || r.R2TL() != 8 {
		t.Errorf("% x", p.Header)
	}
	p = h.next()
	if d := (*pdu.C2HData)(p.Header); d.CCCID() != 9 || d.DATAO() != 10 || p.PDO()%16 != 0 || p.Flags()&pdu.LastPDU == 0 {
		t.Errorf("% x", p.Header)
	}
	equal(t, "data", p.Data, []byte{1, 2, 3, 4})
	p = h.next()
	if e := (*pdu.TermReq)(p.Header).Err(p.Data); e.From != pdu.Controller || e.FES != pdu.FESDataLimitExceeded || len(e.Header) != 8 {
		t.Errorf("%+v", e)
	}
}

// Connections get their scripts by number; those without one go to the test.
func TestSequenceAndAccept(t *testing.T) {
	say := func(s string) tcptest.Script { return func(c *tcptest.Conn) { c.Send([]byte(s)) } }
	s := start(t, tcptest.Sequence(say("a"), nil, func(c *tcptest.Conn) {
		c.Send([]byte("b"))
		c.HandOver()
	}, say("c")), nil)
	heard := func(h *host) string {
		b, err := io.ReadAll(h.nc)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	var hosts []*host
	for i := range 5 {
		hosts = append(hosts, dial(t, s))
		for s.Accepted() != i+1 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	for range 2 {
		c := s.Accept(t)
		c.Send([]byte{'0' + byte(c.Index())})
		c.Close()
	}
	for i, want := range []string{"a", "1", "b2", "c", "c"} {
		if got := heard(hosts[i]); got != want {
			t.Errorf("connection %d said %q, want %q", i, got, want)
		}
		hosts[i].nc.Close()
	}
	wantErr(t, s.Close())
}

// On a connection that was handed over, failures are the test's.
func TestAcceptFails(t *testing.T) {
	s := start(t, nil, &tcptest.Config{Timeout: 50 * time.Millisecond})
	if text := fails(t, func(tb testing.TB) { s.Accept(tb) }); text == "" {
		t.Error("no reason")
	}
	dial(t, s)
	tb := &recorder{TB: t}
	c := s.Accept(tb)
	if text := fails(t, func(testing.TB) { c.Expect(pdu.TypeICReq) }); text == "" {
		t.Error("no reason")
	}
	wantErr(t, s.Close())
	if text := fails(t, func(tb testing.TB) { s.Accept(tb) }); text == "" {
		t.Error("no reason")
	}
}

// A server that stops listening refuses, and takes its port up again.
func TestUnlisten(t *testing.T) {
	for _, addr := range []netip.Addr{{}, netip.IPv6Loopback()} {
		s := start(t, func(c *tcptest.Conn) { c.Drain() }, &tcptest.Config{Addr: addr})
		if s.Addr().Addr().Is6() != addr.IsValid() || !s.Addr().Addr().IsLoopback() {
			t.Errorf("listens on %v", s.Addr())
		}
		a, err := nvme.ParseAddress(s.Address(subNQN))
		if err != nil || a.Traddr != s.Addr().Addr().String() || a.Service != fmt.Sprint(s.Addr().Port()) || a.SubNQN != subNQN || a.Family != map[bool]string{false: "ipv4", true: "ipv6"}[addr.IsValid()] {
			t.Errorf("address %+v, %v", a, err)
		}
		kept := dial(t, s)
		for range 3 {
			s.Unlisten()
			s.Unlisten()
			if _, err := net.Dial("tcp", s.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v, want ECONNREFUSED", err)
			}
			if err := s.Listen(); err != nil {
				t.Fatal(err)
			}
			if err := s.Listen(); err != nil {
				t.Error(err)
			}
			dial(t, s)
		}
		kept.send([]byte{1})
		wantErr(t, s.Close())
		wantErr(t, s.Listen()) // does nothing
		wantErr(t, s.Close())
	}
}

// More connections than allowed are closed, longer PDUs refused.
func TestBounds(t *testing.T) {
	s := start(t, func(c *tcptest.Conn) {
		c.SetParams(pdu.Params{})
		c.ExpectCommand(nvme.OpFlush)
		c.ExpectCommand(nvme.OpFlush)
	}, &tcptest.Config{MaxConns: 2, MaxPDU: 100})
	first, second := dial(t, s), dial(t, s)
	for s.Accepted() != 2 {
		time.Sleep(100 * time.Microsecond)
	}
	third := dial(t, s)
	if b, err := io.ReadAll(third.nc); len(b) != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the third connection got %q, %v", b, err)
	}
	second.nc.Close()
	first.post(nvme.Command{Opcode: nvme.OpFlush}, make([]byte, 28))
	first.post(nvme.Command{Opcode: nvme.OpFlush}, make([]byte, 29))
	_, _ = io.ReadAll(first.nc)
	wantErr(t, s.Err(), "PDU longer than")
}

// Writers on several goroutines keep their PDUs together.
func TestConcurrentSend(t *testing.T) {
	const writers, each = 8, 50
	s := start(t, func(c *tcptest.Conn) {
		c.SetParams(pdu.Params{})
		c.Chunk = 5
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for range each {
					c.Send(c.CapsuleResp(&nvme.Completion{CID: uint16(w)}))
				}
			})
		}
		wg.Wait()
	}, nil)
	h := dial(t, s)
	h.rd.Receiver = pdu.NewReceiver(pdu.Host, pdu.Params{}, pdu.Limits{})
	var n [writers]int
	for range writers * each {
		n[(*pdu.CapsuleResp)(h.next().Header).CID()]++
	}
	for w, got := range n {
		if got != each {
			t.Errorf("%d PDUs of writer %d, want %d", got, w, each)
		}
	}
	h.nc.Close()
	wantErr(t, s.Close())
}
