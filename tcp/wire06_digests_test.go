package tcp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// The digests that the host asks for against those that the ICResp has.
func TestWireCase06Digests(t *testing.T) {
	t.Parallel()
	for asked := range 4 {
		for given := range 4 {
			cfg := digestRig(asked&1 != 0, asked&2 != 0)
			cfg.icresp.HDGST, cfg.icresp.DDGST = given&1 != 0, given&2 != 0
			name := fmt.Sprintf("asked hdgst=%v,ddgst=%v, given hdgst=%v,ddgst=%v",
				cfg.tcp.HeaderDigest, cfg.tcp.DataDigest, cfg.icresp.HDGST, cfg.icresp.DDGST)
			t.Run(name, func(t *testing.T) {
				switch {
				case asked == given:
					agreedDigests(t, cfg)
				case given&^asked != 0:
					connectError(t, cfg, func(c *tcptest.Conn) {
						req := c.Handshake(cfg.icresp)
						if req.HDGST != cfg.tcp.HeaderDigest || req.DDGST != cfg.tcp.DataDigest {
							t.Errorf("the ICReq is %+v", req)
						}
						c.ExpectTermReq(pdu.FESUnsupportedParameter, 11)
					}, func(err error) { wantPDUError(t, err, pdu.TypeICResp, pdu.FESUnsupportedParameter, 11) })
				default:
					connectError(t, cfg, func(c *tcptest.Conn) {
						c.Handshake(cfg.icresp)
						c.ExpectEnd() // nothing is wrong with the ICResp
					}, func(err error) { wantDeclined(t, err, asked&^given&1 != 0, asked&^given&2 != 0) })
				}
			})
		}
	}
}

func agreedDigests(t *testing.T, cfg rigConfig) {
	r := newRig(t, cfg)
	o := r.write(pattern(make([]byte, 4096), 1), 0)
	q := r.command(nvme.OpWrite) // the reader checks the digests
	r.play(func(c *tcptest.Conn) { q.Receive(0, 1) })
	r.feed(q.Response(0, 0))
	o.want(t, nvme.StatusSuccess)
}

func wantDeclined(t *testing.T, err error, header, data bool) {
	t.Helper()
	var e *tcp.DigestError
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v, want a *tcp.DigestError", err)
	}
	if e.Header != header || e.Data != data {
		t.Errorf("the error is %+v, want header %v, data %v", *e, header, data)
	}
	if !errors.Is(err, nvme.ErrUnsupported) {
		t.Errorf("%v is not ErrUnsupported", err)
	}
	for word, want := range map[string]bool{"header digest": header, "data digest": data} {
		if strings.Contains(err.Error(), word) != want {
			t.Errorf("%q names the %s: %v, want %v", err, word, !want, want)
		}
	}
}

// Opening a controller that declines is refused, and so is reconnecting to one
// that has changed its mind: the controller is given up, since trying again
// would not help.
func TestWireCase06Controller(t *testing.T) {
	t.Parallel()
	digests := func(cfg *nvme.Config) { cfg.Transport = tcp.Config{HeaderDigest: true, DataDigest: true} }
	decline := func(pdu.ICReqFields) pdu.ICRespFields { return pdu.ICRespFields{HDGST: true} }
	t.Run("open", func(t *testing.T) {
		f := setup(t, &tcptest.Controller{ICResp: decline}, nil)
		wantDeclined(t, f.connect(digests), false, true)
	})
	t.Run("reconnect", func(t *testing.T) {
		k, _ := disk(64)
		ok := make(chan struct{})
		k.ICResp = func(req pdu.ICReqFields) pdu.ICRespFields {
			select {
			case <-ok:
				return decline(req)
			default:
				return pdu.ICRespFields{HDGST: req.HDGST, DDGST: req.DDGST}
			}
		}
		dead := make(chan error, 1)
		f := open(t, k, digests, quickReconnect, func(cfg *nvme.Config) {
			cfg.Events = &nvme.Events{State: func(_ *nvme.Controller, _, to nvme.State, err error) {
				if to == nvme.StateDead {
					dead <- err
				}
			}}
		})
		buf := make([]byte, 512)
		if _, err := f.namespace(1).ReadAt(buf, 0); err != nil {
			t.Fatal(err)
		}
		close(ok)
		f.srv.Drop()
		wantDeclined(t, <-dead, false, true)
		_, err := f.namespace(1).ReadAt(buf, 0)
		if !errors.Is(err, nvme.ErrDead) {
			t.Errorf("ReadAt: %v, want ErrDead", err)
		}
	})
	t.Run("address", func(t *testing.T) {
		for _, opt := range []string{"hdr_digest=1", "hdgst:on", "hdgst=yes", "hdr-digest:true"} {
			reqs := make(chan pdu.ICReqFields, 1)
			f := setup(t, &tcptest.Controller{ICResp: func(req pdu.ICReqFields) pdu.ICRespFields {
				select {
				case reqs <- req:
				default:
				}
				return pdu.ICRespFields{HDGST: req.HDGST, DDGST: req.DDGST}
			}}, nil)
			if err := f.connectTo(f.srv.Address(subNQN)+" "+opt, nil); err != nil {
				t.Fatal(err)
			}
			if req := <-reqs; !req.HDGST || req.DDGST {
				t.Errorf("%s: the ICReq is %+v", opt, req)
			}
		}
	})
}
