package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/vfiouser"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"pcie:0000:01:00.0":                         "trtype:pcie traddr:0000:01:00.0",
		"pcie:01:00.0":                              "trtype:pcie traddr:0000:01:00.0",
		"trtype:PCIe traddr:0000:C1:00.0":           "trtype:pcie traddr:0000:c1:00.0",
		"transport=pcie,traddr=0001:01:00.1":        "trtype:pcie traddr:0001:01:00.1",
		"vfio-user:/run/disk":                       "trtype:vfiouser traddr:/run/disk",
		"trtype:VFIOUSER traddr:/run subnqn:nqn.x":  "trtype:vfiouser traddr:/run subnqn:nqn.x",
		"trtype:vfio-user traddr:/run/cntrl":        "trtype:vfiouser traddr:/run/cntrl",
		"traddr:127.0.0.1 trsvcid:1 subnqn:nqn.x:y": "trtype:tcp traddr:127.0.0.1 trsvcid:1 subnqn:nqn.x:y",
	} {
		o, err := parse(t, "-target", in)
		if err != nil {
			t.Fatal(err)
		}
		e, err := o.endpoint(&layout{})
		if err != nil || e.target != want || e.close != nil {
			t.Errorf("%s: %+v, %v", in, e, err)
			continue
		}
		if local := !strings.Contains(want, "tcp"); (e.open != nil) != local {
			t.Errorf("%s: local %v", in, e.open != nil)
		}
	}
}

// What does not go together is refused before anything is opened.
func TestAddressUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"-target pcie:1", []string{`"1"`, "pcie:0000:01:00.0", "pci list"}},
		{"-target trtype:pcie,traddr:nvme0", []string{"nvme0", "pcie:0000:01:00.0"}},
		{"-target pcie:", []string{"traddr", "write -target"}},
		{"-target vfio-user:", []string{"traddr", "write -target"}},
		{"-target pcie:01:00.0 -hdgst", []string{"-hdgst", "NVMe/TCP"}},
		{"-target vfio-user:/x -ddgst", []string{"-ddgst", "NVMe/TCP"}},
		{"-target vfio-user:/x -no-iommu", []string{"-no-iommu", "drives"}},
		{"-target trtype:tcp,traddr:a,subnqn:nqn.x -no-iommu", []string{"-no-iommu", "drives"}},
		{"-target pcietest -no-iommu", []string{"-no-iommu", "drives"}},
		{"-no-iommu", []string{"-no-iommu", "drives"}},
		{"-target pcietest -hdgst", []string{"-hdgst", "NVMe/TCP"}},
		{"-target pcietest:ideal -backend null", []string{"-backend", "-target pcietest"}},
		{"-target pcietest -size 1k", []string{"-size", "1 MiB"}},
		{"-target pcietest:fast", []string{"pcietest:fast", "-target pcietest:ideal"}},
		{"-target pcie:01:00.0 -backend null", []string{"-backend", "pcietest"}},
		{"-target trtype:pcie,traddr:01:00.0,queue_size:4", []string{"queue_size", "leave it out"}},
		{"-target trtype:vfiouser,traddr:/x,hostnqn:nqn.y", []string{"hostnqn", "leave it out"}},
		{"-target trtype:pcie,traddr:01:00.0,trsvcid:4420", []string{"trsvcid", "leave it out"}},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), strings.Fields(tt.args), &out, &errs); code != exitUsage {
			t.Errorf("%s: exit status %d, want %d", tt.args, code, exitUsage)
		}
		checkLine(t, errs.String(), tt.want)
	}
	o := &options{target: software, targetCores: []int{0, 1}}
	if err := o.check(nil); err == nil {
		o.time, o.block, o.capacity = 1, 1, 1<<20
		err = o.check(nil)
		checkLine(t, fmt.Sprintf("bench: %v\n", err), []string{"-target-cores", "one core"})
	}
}

// Sockets that are no good get one line each, and status 1.
func TestBadSockets(t *testing.T) {
	dir := t.TempDir()
	hangs := filepath.Join(dir, "hangs")
	l, err := net.Listen("unix", hangs)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH\r\n" + strings.Repeat("x", 100)))
			_ = c.Close()
		}
	}()
	defer func() {
		_ = l.Close()
		<-ended
	}()
	for target, want := range map[string][]string{
		socketPrefix + filepath.Join(dir, "none"): {"none", "start a server"},
		socketPrefix + dir:                        {"cntrl", "start a server"},
		socketPrefix + hangs:                      {"correct the path in -target"},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"-target", target, "-time", "1ms"}, &out, &errs); code != exitFailed {
			t.Errorf("%s: exit status %d, want %d", target, code, exitFailed)
		}
		checkLine(t, errs.String(), want)
	}
}

// A server that is silent is given up, and Ctrl-C ends the wait for it.
func TestSilentServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "silent")
	l, err := net.Listen("unix", path) // connections wait, and nobody takes them
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o, err := parse(t, "-target", socketPrefix+path)
	if err != nil {
		t.Fatal(err)
	}
	o.connectTimeout = 50 * time.Millisecond
	lay := &layout{load: []int{firstCore(t)}, shared: true}
	e, err := o.endpoint(lay)
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.open(t.Context(), lay, e)
	if err == nil {
		t.Fatal("connected to a server that says nothing")
	}
	checkLine(t, "bench: "+o.explain(err, s).Error()+"\n", []string{"does not answer", "one at a time"})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	if code := run(ctx, []string{"-target", socketPrefix + path}, &out, &errs); code != exitInterrupted {
		t.Errorf("exit status %d, want %d: %s", code, exitInterrupted, &errs)
	}
}

func TestLocalHints(t *testing.T) {
	drive := &session{endpoint: &endpoint{address: nvme.Address{Transport: transportPCIe, Traddr: "0000:01:00.0"},
		open: func(context.Context) (pcie.Device, error) { return nil, nil }}}
	socket := &session{endpoint: &endpoint{address: nvme.Address{Transport: transportSocket, Traddr: "/x"}, open: drive.open}}
	for _, tt := range []struct {
		s    *session
		err  error
		want string
	}{
		{drive, fmt.Errorf("%w: 0000:01:00.0", pcie.ErrNoFunction), "pci list"},
		{drive, fmt.Errorf("%w: 0000:01:00.0", pcie.ErrNotNVMe), "pci list"},
		{drive, fmt.Errorf("%w: it is bound to nvme", pcie.ErrNotBound), "pci bind 0000:01:00.0"},
		{drive, fmt.Errorf("%w (0000:01:00.0)", pcie.ErrNoIOMMU), "-no-iommu"},
		{drive, &pcie.InUseError{Address: "0000:01:00.0", Uses: []pcie.Use{{Device: "/dev/vfio/3", Kind: pcie.UseOpen, By: "7 (qemu)"}}}, "7 (qemu): end what uses it"},
		{drive, &pcie.PermissionError{Path: "/dev/vfio/3", Err: fs.ErrPermission}, "docs/real-drive.md"},
		{drive, &pcie.MemlockError{Need: 1 << 24, Have: 1 << 16, Err: syscall.ENOMEM}, "ulimit -l 16384"},
		{drive, &pcie.ModuleError{Module: "vfio-pci", For: "0000:01:00.0"}, "modprobe vfio-pci"},
		{drive, &pcie.GroupError{Address: "0000:01:00.0", Group: 3, Members: []pcie.Peer{{Address: "0000:01:00.1", Driver: "ahci"}}}, "0000:01:00.1"},
		{drive, fmt.Errorf("read: %w", pcie.ErrGone), "in its slot"},
		{drive, nvme.ErrFatal, "dmesg"},
		{drive, fmt.Errorf("%w: buffers", load.ErrBuffers), "-depth or -bs"},
		{socket, fmt.Errorf("dial: %w", syscall.ENOENT), "start a server"},
		{socket, fmt.Errorf("dial: %w", syscall.ECONNREFUSED), "nobody listens"},
		{socket, fmt.Errorf("dial: %w", syscall.EACCES), "another user's"},
		{socket, fmt.Errorf("dial: %w", syscall.EPROTOTYPE), "correct the path"},
		{socket, vfiouser.ErrTimeout, "one at a time"},
		{socket, vfiouser.ErrVersion, "vfio-user: correct"},
		{socket, fmt.Errorf("x: %w: %w", vfiouser.ErrProtocol, pcie.ErrGone), "vfio-user: correct"},
		{socket, vfiouser.ErrDevice, "vfio-user: correct"},
		{socket, pcie.ErrGone, "hung up"},
		{socket, errors.New("something\nelse"), "something else"},
	} {
		err := new(options).explain(tt.err, tt.s)
		checkLine(t, "bench: "+err.Error()+"\n", []string{tt.want})
	}
}

func TestNotes(t *testing.T) {
	var n notes
	log := slog.New(&n)
	log.Info("of no interest")
	log.Warn("no huge pages", "device", "0000:01:00.0")
	log.With("a", 1).WithGroup("g").Error("two\nlines")
	if got := n.take(); !slices.Equal(got, []string{"no huge pages device=0000:01:00.0", "two lines"}) || len(n.take()) != 0 {
		t.Errorf("%q", got)
	}
}
