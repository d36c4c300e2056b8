package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// wantRejected checks for a rejected Connect.
func wantRejected(t *testing.T, err error, st nvme.Status, queue int, words string) {
	t.Helper()
	var e *tcp.ConnectError
	var op *nvme.OpError
	if !errors.As(err, &e) || !errors.As(err, &op) {
		t.Fatalf("the error is %v, want a *tcp.ConnectError in an *nvme.OpError", err)
	}
	if e.Status.Code() != st || !errors.Is(err, st) || op.Queue != queue || !strings.Contains(err.Error(), words) {
		t.Errorf("the error is %v (queue %d), want %v, queue %d, and %q in it", err, op.Queue, st, queue, words)
	}
}

// The controller does not know the subsystem, or the host.
func TestConnectRejected(t *testing.T) {
	t.Parallel()
	t.Run("wrong subsystem", func(t *testing.T) {
		f := setup(t, &tcptest.Controller{SubNQN: "nqn.2014-08.org.example:other"}, nil)
		err := f.connect()
		wantRejected(t, err, nvme.StatusConnectInvalidParameters, 0, "subsystem NQN")
		var e *tcp.ConnectError
		if errors.As(err, &e) && e.Parameter != (nvme.InvalidParameter{Offset: 256, InData: true}) {
			t.Errorf("parameter %+v", e.Parameter)
		}
	})
	t.Run("host not allowed", func(t *testing.T) {
		f := setup(t, &tcptest.Controller{HostNQN: "nqn.2014-08.org.example:other"}, nil)
		wantRejected(t, f.connect(), nvme.StatusConnectInvalidHost, 0, "connect")
	})
	for _, st := range []nvme.Status{
		nvme.StatusConnectIncompatibleFormat | nvme.StatusDNR, nvme.StatusConnectControllerBusy, nvme.StatusConnectRestartDiscovery,
		nvme.StatusInvalidQueueType, nvme.StatusAuthenticationRequired | nvme.StatusDNR, nvme.StatusInternalError,
		nvme.StatusInvalidField | nvme.StatusDNR, nvme.MakeStatus(nvme.SCTVendor, 0xff), nvme.MakeStatus(5, 0x55),
	} {
		for _, queue := range []uint16{0, 1} {
			t.Run(fmt.Sprintf("%#x on queue %d", uint16(st), queue), func(t *testing.T) {
				k, _ := disk(64)
				var willing atomic.Bool
				k.Override = func(r *tcptest.Request) bool {
					cc, err := nvme.ParseConnect(&r.Cmd)
					if err != nil || cc.QID != queue || willing.Load() {
						return false
					}
					r.Complete(st, 0)
					return true
				}
				f := setup(t, k, nil)
				err := f.connect()
				if queue == 1 {
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.c.OpenQueue(f.ctx(), f.p, nvme.QueueConfig{})
				}
				wantRejected(t, err, st.Code(), int(queue), "Connect rejected")
				if queue == 1 { // the queue identifier is free again
					willing.Store(true)
					if q, err := f.c.OpenQueue(f.ctx(), f.p, nvme.QueueConfig{}); err != nil || q.ID() != 1 {
						t.Errorf("the next queue: %v", err)
					}
				}
			})
		}
	}
}

// A controller that wants authentication, or a secure channel.
func TestConnectAuthentication(t *testing.T) {
	t.Parallel()
	for _, resp := range []nvme.ConnectResponse{{AuthRequired: true}, {SecureRequired: true}, {AuthRequired: true, SecureRequired: true}} {
		k := &tcptest.Controller{Override: func(r *tcptest.Request) bool {
			if r.Cmd.Opcode != nvme.OpFabrics {
				return false
			}
			r.Complete(nvme.StatusSuccess, resp.Result())
			return true
		}}
		f := setup(t, k, nil)
		if err := f.connect(); !errors.Is(err, tcp.ErrAuthentication) || !errors.Is(err, nvme.ErrUnsupported) {
			t.Errorf("%+v: %v, want ErrAuthentication", resp, err)
		}
	}
}

// A controller that insists on submission queue flow control gets it, on all
// queues, and SUCCESS is no longer taken.
func TestConnectFlowControlInsisted(t *testing.T) {
	t.Parallel()
	for _, from := range []uint16{0, 1} { // the first queue on which it does
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			k, _ := disk(64)
			var declined atomic.Int32
			k.Override = func(r *tcptest.Request) bool {
				cc, err := nvme.ParseConnect(&r.Cmd)
				if err != nil || cc.QID < from || cc.Attributes&nvme.ConnectDisableFlowControl == 0 {
					return false
				}
				declined.Add(1)
				r.Complete(nvme.StatusConnectInvalidParameters|nvme.StatusDNR, nvme.InvalidParameter{Offset: 46}.Result())
				return true
			}
			f := open(t, k)
			errs := make(chan error, 3)
			for range 3 { // at once
				go func() {
					_, err := f.c.OpenQueue(f.ctx(), f.p, nvme.QueueConfig{})
					errs <- err
				}()
			}
			for range 3 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			wantWorks(t, f)
			if n := declined.Load(); n < 1 || n > 3 {
				t.Errorf("declined %d times", n)
			}
		})
	}
}

// The context of Open ends an attempt at once, wherever it is.
func TestConnectCancelled(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]tcptest.Script{
		"accepted":   func(*tcptest.Conn) {},
		"handshake":  func(c *tcptest.Conn) { c.ExpectICReq() },
		"connect":    func(c *tcptest.Conn) { c.Handshake(pdu.ICRespFields{}) },
		"properties": func(c *tcptest.Conn) { c.Handshake(pdu.ICRespFields{}); c.AcceptConnect(1) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cause := errors.New("changed my mind")
			f := setup(t, nil, func(c *tcptest.Conn) {
				until(c)
				cancel(cause)
				c.Stall()
			})
			_, err := nvme.Open(ctx, f.srv.Address(subNQN), &nvme.Config{Poller: f.p, HostNQN: hostNQN, ConnectTimeout: time.Hour})
			if !errors.Is(err, cause) {
				t.Errorf("%v, want the cause of the cancellation", err)
			}
		})
	}
}
