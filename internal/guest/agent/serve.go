//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/qpoll/qpoll/internal/guest/wire"
	"github.com/qpoll/qpoll/internal/sys/pid1"
)

type server struct {
	modules  []string
	setupErr error // sent with the answer to hello
}

// serve sets the guest up, and then serves the host.
func serve() error {
	var s server
	s.modules, s.setupErr = setup()
	port, err := openPort()
	if err != nil {
		return err
	}
	return s.serve(port)
}

// serve carries out requests until the host closes the session.
func (s *server) serve(port io.ReadWriteCloser) error {
	sess, err := yamux.Server(port, wire.SessionConfig())
	if err != nil {
		return err
	}
	for {
		st, err := sess.AcceptStream()
		if errors.Is(err, io.EOF) || errors.Is(err, yamux.ErrSessionShutdown) {
			return nil
		}
		if err != nil {
			return err
		}
		go s.handle(st)
	}
}

func (s *server) handle(st *yamux.Stream) {
	defer st.Close()
	k, b, err := wire.ReadFrame(st, nil)
	if err != nil {
		return
	}
	var res *wire.Result
	if k != wire.KindRequest {
		err = fmt.Errorf("first frame has kind %d", k)
	} else {
		var req *wire.Request
		if req, err = wire.DecodeRequest(b); err == nil {
			res, err = s.do(st, req)
		}
	}
	if res == nil {
		res = new(wire.Result)
	}
	if err != nil {
		res.Err = packError(err)
	}
	// The host may have gone away; then nobody is interested in the result.
	_ = wire.WriteJSON(st, wire.KindResult, res)
}

func (s *server) do(st *yamux.Stream, req *wire.Request) (*wire.Result, error) {
	switch req.Op {
	case wire.OpHello:
		return s.hello()
	case wire.OpExec:
		return runExec(st, req.Exec)
	case wire.OpSteps:
		return runSteps(req.Steps)
	case wire.OpUpload:
		return nil, upload(st, req.Path, os.FileMode(req.Mode).Perm())
	case wire.OpFetch:
		return nil, fetch(st, req.Path)
	}
	return nil, fmt.Errorf("operation %q", req.Op)
}

func (s *server) hello() (*wire.Result, error) {
	if s.setupErr != nil {
		return nil, fmt.Errorf("setup: %w", s.setupErr)
	}
	release, err := pid1.Release()
	if err != nil {
		return nil, err
	}
	up, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(up), " ")
	return &wire.Result{Hello: &wire.Hello{Release: release, Uptime: first, Modules: s.modules}}, nil
}

// openPort opens the virtio-serial port that carries the session.
func openPort() (*hostPort, error) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			b, err := os.ReadFile(n)
			if err != nil || strings.TrimSpace(string(b)) != wire.PortName {
				continue
			}
			f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR, 0)
			if err == nil {
				return &hostPort{f: f}, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no virtio-serial port %s", wire.PortName)
		}
	}
}

// hostPort is the port as a stream. Until the kernel has learnt that the host
// side is connected, a read gives end of file; that is no end before the first
// byte.
type hostPort struct {
	f    *os.File
	seen bool
}

func (p *hostPort) Read(b []byte) (int, error) {
	for {
		n, err := p.f.Read(b)
		if n > 0 {
			p.seen = true
		}
		if p.seen || !errors.Is(err, io.EOF) {
			return n, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *hostPort) Write(b []byte) (int, error) { return p.f.Write(b) }
func (p *hostPort) Close() error                { return p.f.Close() }
