package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Peers that are no good get one line each, and status 1.
func TestBadPeers(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(closed.Addr().String())
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		target string
		want   []string
	}{
		{"refused", "trtype:tcp traddr:127.0.0.1 trsvcid:" + port + " subnqn:nqn.x", []string{"127.0.0.1:" + port, "connection refused", "start a target", "trsvcid"}},
		{"unknown name", "trtype:tcp traddr:no-such-host.invalid subnqn:nqn.x", []string{"no-such-host.invalid", "traddr"}},
		{"closes", peer(t, func(c net.Conn) { receive(c, 128) }), []string{"NVMe/TCP target", "trsvcid"}},
		{"another protocol", peer(t, func(c net.Conn) {
			receive(c, 128)
			_, _ = c.Write([]byte(strings.Repeat("SSH-2.0-OpenSSH\r\n", 20)))
			receive(c, 1<<20)
		}), []string{"NVMe/TCP target", "trsvcid"}},
		{"version", peer(t, func(c net.Conn) {
			receive(c, 128)
			_, _ = c.Write(icresp(1))
			receive(c, 1<<20)
		}), []string{"PFV 1", "version"}},
		{"turned away", peer(t, func(c net.Conn) {
			b := receive(c, 128)
			e := pdu.Error{PDU: pdu.TypeICReq, FES: pdu.FESUnsupportedParameter, FEI: 8}
			_, _ = c.Write(e.AppendTermReq(nil, pdu.Controller, b))
			receive(c, 1<<20)
		}), []string{"terminated by the controller", "PFV", "version"}},
		{"wants digests", peer(t, func(c net.Conn) {
			b := receive(c, 128)
			e := pdu.Error{PDU: pdu.TypeICReq, FES: pdu.FESUnsupportedParameter, FEI: 11}
			_, _ = c.Write(e.AppendTermReq(nil, pdu.Controller, b))
			receive(c, 1<<20)
		}), []string{"terminated by the controller", "DGST", "give -hdgst, -ddgst or both"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := run(t.Context(), []string{"-time", "1ms", "-target", tt.target}, &out, &errs); code != exitFailed {
				t.Errorf("exit status %d, want %d", code, exitFailed)
			}
			checkLine(t, errs.String(), tt.want)
			if out.Len() != 0 {
				t.Errorf("output %q", &out)
			}
		})
	}
}

// A peer that is silent is given up.
func TestSilentPeer(t *testing.T) {
	o, err := parse(t, "-target", peer(t, func(c net.Conn) { receive(c, 1<<20) }))
	if err != nil {
		t.Fatal(err)
	}
	o.connectTimeout = 50 * time.Millisecond
	l := &layout{load: []int{firstCore(t)}, shared: true}
	e, err := o.endpoint(l)
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.open(t.Context(), l, e)
	if err == nil {
		t.Fatal("connected to a peer that says nothing")
	}
	checkLine(t, "bench: "+o.explain(err, s).Error()+"\n", []string{"nothing answers there", "firewall"})
}

// Ctrl-C ends an attempt to connect.
func TestInterruptedConnect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := peer(t, func(c net.Conn) {
		receive(c, 128)
		cancel()
		receive(c, 1<<20)
	})
	var out, errs strings.Builder
	if code := run(ctx, []string{"-target", target}, &out, &errs); code != exitInterrupted {
		t.Errorf("exit status %d, want %d", code, exitInterrupted)
	}
	checkLine(t, errs.String(), []string{"interrupted"})
}

func firstCore(t *testing.T) int {
	t.Helper()
	cores, err := poller.AllowedCores()
	if err != nil {
		t.Fatal(err)
	}
	return cores[0]
}

func TestHints(t *testing.T) {
	rejected := func(st nvme.Status, p nvme.InvalidParameter) error {
		return &nvme.OpError{Op: "connect", Err: &tcp.ConnectError{Status: st, Parameter: p}}
	}
	s := &session{endpoint: &endpoint{address: nvme.Address{SubNQN: "nqn.x:disk"}}}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{rejected(nvme.StatusConnectInvalidParameters|nvme.StatusDNR, nvme.InvalidParameter{Offset: 256, InData: true}), "there is no subsystem nqn.x:disk: correct subnqn"},
		{rejected(nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 512, InData: true}), "correct hostnqn"},
		{rejected(nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 44}), "-depth less"},
		{rejected(nvme.StatusConnectInvalidHost, nvme.InvalidParameter{}), "allow it at the target"},
		{rejected(nvme.StatusConnectIncompatibleFormat, nvme.InvalidParameter{}), "another version"},
		{rejected(nvme.StatusConnectControllerBusy, nvme.InvalidParameter{}), "no controller left"},
		{rejected(nvme.StatusInternalError, nvme.InvalidParameter{}), "Internal Error"},
		{&tcp.DigestError{Header: true}, "leave out -hdgst,"},
		{&tcp.DigestError{Header: true, Data: true}, "leave out -hdgst and -ddgst,"},
		{fmt.Errorf("connect: %w", syscall.EHOSTUNREACH), "correct traddr"},
		{fmt.Errorf("connect: %w", syscall.ETIMEDOUT), "nothing answers"},
		{fmt.Errorf("connect: %w", nvme.ErrTimeout), "nothing answers"},
		{fmt.Errorf("receive: %w", syscall.ECONNRESET), "NVMe/TCP target"},
		{poller.ErrCoreNotAllowed, "-cores"},
		{load.ErrWorkload, "-depth or -bs"},
		{load.ErrRange, "-range or -bs"},
		{&missingNamespace{err: nvme.ErrNoNamespace}, "no namespaces"},
		{&missingNamespace{err: nvme.ErrNoNamespace, have: []uint32{7}}, "-nsid 7"},
		{&missingNamespace{err: nvme.ErrNoNamespace, have: []uint32{1, 2, 9}}, "-nsid one of 1-2,9"},
		{&missingNamespace{err: nvme.ErrNoNamespace, have: make([]uint32, 100)}, "and more"},
		{errors.New("text of a peer\r\nwith\x1b[31m color"), "text of a peer with [31m color"},
	} {
		err := new(options).explain(tt.err, s)
		checkLine(t, "bench: "+err.Error()+"\n", []string{tt.want})
	}
	if new(options).explain(nil, nil) != nil {
		t.Error("no error was explained")
	}
}
