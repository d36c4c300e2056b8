package nvmet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/qpoll/qpoll/internal/guest"
)

// ANAState is the state of an ANA group on a port, by the kernel's name.
type ANAState string

// The states of an ANA group.
const (
	Optimized      ANAState = "optimized"
	NonOptimized   ANAState = "non-optimized"
	Inaccessible   ANAState = "inaccessible"
	PersistentLoss ANAState = "persistent-loss"
	Change         ANAState = "change"
)

// loopback is the address of every port. From outside it is reached by a
// forwarded port of the host of the same number, so that the address in the
// discovery log is right for an initiator on the host.
const loopback = "127.0.0.1"

// PortConfig describes a port. The zero value is a port without subsystems that
// initiators on the host, and in other guests, can reach.
type PortConfig struct {
	ID uint16 // from 1; 0 takes the next one
	// NIC is the interface of the guest that initiators outside come through.
	NIC int
	// Internal is for a port that only the guest itself uses.
	Internal bool
	// Trsvcid is the TCP port; default: one that is free on the host, or
	// 4419 + ID for an internal port.
	Trsvcid int
	// InlineData is how much data a command capsule can carry, in bytes;
	// default 16384. The target wants room for the 1024 bytes of the Connect
	// command even on the admin queue.
	InlineData int
	// MaxQueueSize bounds the size of queues, in entries.
	MaxQueueSize int
	// PI lets the port offer protection information.
	PI bool
	// ANA has the ANA groups and their states. Group 1 is always there, and
	// optimized by default.
	ANA map[uint32]ANAState
	// Attrs are further attributes of configfs.
	Attrs      map[string]string
	Subsystems []*Subsystem
}

// minInlineData is the size of the data of a Connect command, in bytes.
const minInlineData = 1024

// Port is a port of the target. It listens while it has subsystems.
type Port struct {
	t   *Target
	cfg PortConfig

	mu     sync.Mutex
	groups map[uint32]bool
	subs   map[string]bool // NQNs of the linked subsystems; of those to link again, while stopped
	up     bool            // not stopped
}

// ID returns the port ID.
func (p *Port) ID() uint16 { return p.cfg.ID }

// Trsvcid returns the TCP port, in the guest and on the host.
func (p *Port) Trsvcid() int { return p.cfg.Trsvcid }

// HostAddr returns address and port for an initiator on the host.
func (p *Port) HostAddr() string { return net.JoinHostPort(loopback, strconv.Itoa(p.cfg.Trsvcid)) }

func (p *Port) dir() string { return portDir(p.cfg.ID) }

func portDir(id uint16) string { return root + "/ports/" + strconv.Itoa(int(id)) }

// AddPort makes a port, with its subsystems linked.
func (t *Target) AddPort(ctx context.Context, c PortConfig) (*Port, error) {
	if c.InlineData != 0 && c.InlineData < minInlineData {
		return nil, fmt.Errorf("%w: inline data of %d bytes", ErrConfig, c.InlineData)
	}
	c.ID = t.portID(c.ID)
	p := &Port{t: t, up: true, groups: map[uint32]bool{1: true}, subs: map[string]bool{}}
	if err := t.openPort(ctx, &c); err != nil {
		return nil, fmt.Errorf("nvmet: port %d: %w", c.ID, err)
	}
	p.cfg = c
	if err := t.g.Apply(ctx, c.batch()); err != nil {
		return nil, fmt.Errorf("nvmet: port %d: %w", c.ID, err)
	}
	for _, g := range slices.Sorted(maps.Keys(c.ANA)) {
		p.groups[g] = true
	}
	for _, s := range c.Subsystems {
		if err := p.Link(ctx, s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// openPort settles the TCP port.
func (t *Target) openPort(ctx context.Context, c *PortConfig) (err error) {
	switch {
	case c.Internal:
		c.Trsvcid = cmp.Or(c.Trsvcid, 4419+int(c.ID))
	case c.Trsvcid != 0:
		err = t.g.ForwardFrom(ctx, c.Trsvcid, c.NIC, loopback, c.Trsvcid)
	default:
		c.Trsvcid, err = t.g.Forward(ctx, c.NIC, loopback, 0)
	}
	return err
}

func (c *PortConfig) batch() *guest.Batch {
	dir := portDir(c.ID)
	b := new(guest.Batch)
	b.Mkdir(dir)
	attr := func(k, v string) { b.Write(dir+"/"+k, v) }
	attr("addr_trtype", "tcp")
	attr("addr_adrfam", "ipv4")
	attr("addr_traddr", loopback)
	attr("addr_trsvcid", strconv.Itoa(c.Trsvcid))
	if c.InlineData != 0 {
		attr("param_inline_data_size", strconv.Itoa(c.InlineData))
	}
	if c.MaxQueueSize != 0 {
		attr("param_max_queue_size", strconv.Itoa(c.MaxQueueSize))
	}
	if c.PI {
		attr("param_pi_enable", "1")
	}
	for _, k := range slices.Sorted(maps.Keys(c.Attrs)) {
		attr(k, c.Attrs[k])
	}
	for _, g := range slices.Sorted(maps.Keys(c.ANA)) {
		if g != 1 {
			b.Mkdir(anaDir(c.ID, g))
		}
		b.Write(anaDir(c.ID, g)+"/ana_state", string(c.ANA[g]))
	}
	return b
}

func anaDir(port uint16, group uint32) string {
	return portDir(port) + "/ana_groups/" + strconv.FormatUint(uint64(group), 10)
}
