package tcptest_test

import (
	"errors"
	"fmt"
	"io"
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
