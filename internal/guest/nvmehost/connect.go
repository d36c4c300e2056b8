package nvmehost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
)

// Modules are the modules that the initiator needs. Connect loads them where
// they are missing.
var Modules = []string{"nvme-tcp"}

// DiscoveryNQN is the well-known name of the discovery subsystem.
const DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

// Forever as a time means no limit.
const Forever time.Duration = -1

const fabricsDev = "/dev/nvme-fabrics"

// ErrConfig is wrapped by errors about a configuration that cannot work.
var ErrConfig = errors.New("nvmehost: bad configuration")

// ConnectConfig says what to connect to, and how. Fields of zero leave what the
// kernel chooses.
type ConnectConfig struct {
	NQN     string
	Traddr  string // IPv4 address; default 127.0.0.1, the guest itself
	Trsvcid int
	// HostTraddr and HostIface choose the guest's own address and interface.
	HostTraddr, HostIface string
	HostNQN, HostID       string

	NrIOQueues, NrWriteQueues, NrPollQueues int
	QueueSize                               int // entries, 16 to 1024

	HeaderDigest, DataDigest bool
	DisableSQFlow            bool
	DuplicateConnect         bool // allow a second controller of the same path

	// Times are in whole seconds. CtrlLoss and FastIOFail can be Forever.
	KeepAlive, ReconnectDelay, CtrlLoss, FastIOFail time.Duration

	// Options are further options, by the kernel's name. An empty value is
	// for an option that takes none.
	Options map[string]string
}

// Controller is a controller of the kernel's initiator.
type Controller struct {
	g      *guest.Guest
	Name   string // such as nvme0
	Cntlid uint16 // the ID that the target gave it
	NQN    string
}

// Load loads the initiator into the kernel of the guest.
func Load(ctx context.Context, g *guest.Guest) error {
	for _, m := range Modules {
		if err := g.LoadModule(ctx, m, ""); err != nil {
			return fmt.Errorf("nvmehost: %w", err)
		}
	}
	return nil
}

// Connect makes a controller and returns when the kernel has connected it; if it
// cannot, the error wraps the kernel's errno. The kernel looks for namespaces
// afterwards, see WaitNamespace.
func Connect(ctx context.Context, g *guest.Guest, c ConnectConfig) (*Controller, error) {
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	if err := Load(ctx, g); err != nil {
		return nil, err
	}
	answer, err := g.Transact(ctx, fabricsDev, opts)
	if err != nil {
		return nil, fmt.Errorf("nvmehost: connect %s: %w", opts, err)
	}
	instance, cntlid, err := parseAnswer(answer)
	if err != nil {
		return nil, err
	}
	return &Controller{g: g, Name: fmt.Sprintf("nvme%d", instance), Cntlid: cntlid, NQN: c.NQN}, nil
}

// parseAnswer parses "instance=0,cntlid=1".
func parseAnswer(s string) (instance int, cntlid uint16, err error) {
	if _, err := fmt.Sscanf(strings.TrimSpace(s), "instance=%d,cntlid=%d", &instance, &cntlid); err != nil {
		return 0, 0, fmt.Errorf("nvmehost: answer %q of %s: %w", s, fabricsDev, err)
	}
	return instance, cntlid, nil
}

// options returns the line for /dev/nvme-fabrics.
func (c *ConnectConfig) options() (string, error) {
	if c.NQN == "" || c.Trsvcid < 1 || c.Trsvcid > 65535 {
		return "", fmt.Errorf("%w: NQN %q, port %d", ErrConfig, c.NQN, c.Trsvcid)
	}
	var o optionList
	o.text("transport", "tcp")
	o.text("traddr", orDefault(c.Traddr, "127.0.0.1"))
	o.number("trsvcid", c.Trsvcid)
	o.text("nqn", c.NQN)
	o.text("host_traddr", c.HostTraddr)
	o.text("host_iface", c.HostIface)
	o.text("hostnqn", c.HostNQN)
	o.text("hostid", c.HostID)
	o.number("nr_io_queues", c.NrIOQueues)
	o.number("nr_write_queues", c.NrWriteQueues)
	o.number("nr_poll_queues", c.NrPollQueues)
	o.number("queue_size", c.QueueSize)
	o.flag("hdr_digest", c.HeaderDigest)
	o.flag("data_digest", c.DataDigest)
	o.flag("disable_sqflow", c.DisableSQFlow)
	o.flag("duplicate_connect", c.DuplicateConnect)
	o.seconds("keep_alive_tmo", c.KeepAlive)
	o.seconds("reconnect_delay", c.ReconnectDelay)
	o.seconds("ctrl_loss_tmo", c.CtrlLoss)
	o.seconds("fast_io_fail_tmo", c.FastIOFail)
	for _, k := range slices.Sorted(maps.Keys(c.Options)) {
		if c.Options[k] == "" {
			o.flag(k, true)
		} else {
			o.text(k, c.Options[k])
		}
	}
	if o.err != nil {
		return "", o.err
	}
	return strings.Join(o.list, ","), nil
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

type optionList struct {
	list []string
	err  error
}

func (o *optionList) text(k, v string) {
	if strings.ContainsAny(v, ",\n") {
		o.err = fmt.Errorf("%w: %s %q", ErrConfig, k, v)
	}
	if v != "" {
		o.list = append(o.list, k+"="+v)
	}
}

func (o *optionList) number(k string, v int) {
	if v != 0 {
		o.text(k, strconv.Itoa(v))
	}
}

func (o *optionList) flag(k string, on bool) {
	if on {
		o.list = append(o.list, k)
	}
}

func (o *optionList) seconds(k string, d time.Duration) {
	switch {
	case d == Forever:
		o.text(k, "-1")
	case d < 0 || d%time.Second != 0:
		o.err = fmt.Errorf("%w: %s %v is not in whole seconds", ErrConfig, k, d)
	default:
		o.number(k, int(d/time.Second))
	}
}
