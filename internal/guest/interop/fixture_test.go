//go:build guest

package interop

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
)

const (
	hostNQN = "nqn.2014-08.org.nvmexpress:uuid:8c4a1f4e-6a0c-4f6c-9d5e-0d6a5c3b2a10"
	// hostID of hostNQN.
	hostID = "8c4a1f4e-6a0c-4f6c-9d5e-0d6a5c3b2a10"
)

// check fails the test for an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newPoller starts a poller that leaves the processor to QEMU when it can.
func newPoller(t *testing.T, name string) *poller.Poller {
	t.Helper()
	p, err := poller.New(poller.Config{Name: name, Unpinned: true, Idle: poller.Adaptive})
	check(t, err)
	check(t, p.Start())
	t.Cleanup(func() { p.Close() })
	return p
}

// kernelTarget is a guest whose kernel is the target.
type kernelTarget struct {
	g    *guest.Guest
	tgt  *nvmet.Target
	made int // subsystems
}

// exported is a subsystem of the kernel's target, with ports of its own.
type exported struct {
	k     *kernelTarget
	sub   *nvmet.Subsystem
	ns    []*nvmet.Namespace
	ports []*nvmet.Port
}

// export makes a subsystem with namespaces, and ports that only it has.
func (k *kernelTarget) export(t *testing.T, ports []nvmet.PortConfig, namespaces ...nvmet.NamespaceConfig) *exported {
	t.Helper()
	k.made++
	e := &exported{k: k}
	var err error
	e.sub, err = k.tgt.AddSubsystem(t.Context(), nvmet.SubsystemConfig{
		NQN:    fmt.Sprintf("nqn.2014-08.org.qpoll:s%d", k.made),
		Serial: fmt.Sprintf("SN%04d", k.made), Model: "kernel target", Firmware: "FW7",
	})
	check(t, err)
	t.Cleanup(func() {
		for _, p := range e.ports {
			check(t, p.Remove(context.Background()))
		}
		for _, n := range e.ns {
			check(t, n.Remove(context.Background()))
		}
		check(t, e.sub.Remove(context.Background()))
	})
	for _, c := range namespaces {
		e.add(t, c)
	}
	for _, c := range ports {
		c.Subsystems = []*nvmet.Subsystem{e.sub}
		p, err := k.tgt.AddPort(t.Context(), c)
		check(t, err)
		e.ports = append(e.ports, p)
	}
	return e
}

func (e *exported) add(t *testing.T, c nvmet.NamespaceConfig) *nvmet.Namespace {
	t.Helper()
	n, err := e.sub.AddNamespace(t.Context(), c)
	check(t, err)
	e.ns = append(e.ns, n)
	return n
}

// onePort is one port without options.
var onePort = []nvmet.PortConfig{{}}

// address of a subsystem at a port of the kernel's target; without an NQN, that
// of the port.
func address(p *nvmet.Port, nqn string) string {
	s := fmt.Sprintf("trtype:tcp traddr:127.0.0.1 trsvcid:%d", p.Trsvcid())
	if nqn != "" {
		s += " subnqn:" + nqn
	}
	return s
}

// host is our initiator, connected to one controller.
type host struct {
	*nvme.Controller
	rec *recorder
}

// config completes a configuration for a test.
func config(cfg nvme.Config, rec *recorder) *nvme.Config {
	if cfg.HostNQN == "" {
		cfg.HostNQN = hostNQN
	}
	if cfg.ReconnectDelay == 0 {
		cfg.ReconnectDelay = 100 * time.Millisecond
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = time.Minute // a busy machine
	}
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = time.Minute
	}
	if cfg.Transport == nil {
		cfg.Transport = tcp.Config{}
	}
	if rec != nil {
		cfg.Events = rec.events()
	}
	return &cfg
}

// connect opens the exported subsystem through one of its ports.
func (e *exported) connect(t *testing.T, port int, cfg nvme.Config) *host {
	t.Helper()
	return open(t, address(e.ports[port], e.sub.NQN()), cfg)
}

func open(t *testing.T, addr string, cfg nvme.Config) *host {
	t.Helper()
	h := &host{rec: &recorder{}}
	var err error
	h.Controller, err = nvme.Open(t.Context(), addr, config(cfg, h.rec))
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("close %s: %v", addr, err)
		}
		if t.Failed() {
			h.rec.dump(t, addr)
		}
	})
	return h
}

func (h *host) namespace(t *testing.T, nsid uint32) *nvme.Namespace {
	t.Helper()
	ns, err := h.Namespace(t.Context(), nsid)
	check(t, err)
	return ns
}

// queue opens a queue pair for a namespace on a poller, nil for that of the
// controller.
func (h *host) queue(t *testing.T, nsid uint32, p *poller.Poller) *nvme.NamespaceQueue {
	t.Helper()
	q, err := h.namespace(t, nsid).Queue(t.Context(), p, nvme.QueueConfig{})
	check(t, err)
	return q
}

var (
	// kernelNotes matches what the kernel's host and target, and the block
	// layer and file systems above, have to say for themselves.
	kernelNotes = regexp.MustCompile(`nvme|nvmet|EXT4|I/O error|blk_|Buffer I/O`)
	// lossNotes matches what they say of connections that end, and suspect
	// what they say of a peer that does not keep to the protocol.
	lossNotes = regexp.MustCompile(`^(nvme nvme\d+|nvme_tcp|nvmet|nvmet_tcp|block nvme\d+n\d+|I/O error, dev nvme\d+c\d+n\d+)\b|callbacks suppressed$`)
	suspect   = regexp.MustCompile(`(?i)digest|mismatch|bad |invalid|unexpected|unsupported|exceeded|out of|no space|` +
		`SUCCESS set|probably a bug|ttag|header|DNR`)
)

// expected says what the kernel of the guest may log.
type expected struct {
	loss  bool     // of connections that end
	notes []string // patterns
}

// quiet fails the test for each warning or error of the guest's kernel about
// NVMe or I/O since the last call, unless it was to be expected.
func quiet(t *testing.T, g *guest.Guest, e expected) {
	t.Helper()
	res, err := g.Run(context.Background(), "dmesg", "-r", "-c")
	check(t, err)
	ok := regexp.MustCompile(strings.Join(append(e.notes, `^$`), "|"))
	for line := range strings.Lines(string(res.Stdout)) {
		level, msg, _ := strings.Cut(strings.TrimSpace(line), ">")
		if len(level) != 2 || level[1] > '4' { // <5> is a notice
			continue
		}
		_, msg, _ = strings.Cut(msg, "] ")
		lost := e.loss && lossNotes.MatchString(msg) && !suspect.MatchString(msg)
		if kernelNotes.MatchString(msg) && !lost && !ok.MatchString(msg) {
			t.Errorf("the guest's kernel says %q", msg)
		}
	}
}
