package mpath

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// attribute is a value that reads and is set as text, as in the kernel's sysfs.
type attribute struct {
	name string
	get  func() string
	set  func(v string) error // nil: read only
}

// number is what a set function takes its text to be.
func number(name, v string, set func(n int) error) error {
	n, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil {
		return fmt.Errorf("%w: %s: %q is not a number", ErrAttribute, name, v)
	}
	return set(n)
}

// maxUnits bounds what is given as a number of seconds or the like.
const maxUnits = 1 << 31

// units returns n units of time.
func units(name string, n int, unit time.Duration) (time.Duration, error) {
	if n < 0 || n > maxUnits {
		return 0, fmt.Errorf("%w: %s: %d", ErrAttribute, name, n)
	}
	return time.Duration(n) * unit, nil
}

// attributes returns those of a head, by their kernel names where it has them.
func (h *Head) attributes() []attribute {
	latency := func() (shift int, batch time.Duration) {
		h.sub.mu.Lock()
		defer h.sub.mu.Unlock()
		return h.shift, h.batch
	}
	return []attribute{
		{"delayed_removal_secs",
			func() string { return strconv.Itoa(int(h.DelayedRemoval() / time.Second)) },
			func(v string) error {
				return number("delayed_removal_secs", v, func(n int) error {
					d, err := units("delayed_removal_secs", n, time.Second)
					if err != nil {
						return err
					}
					return h.SetDelayedRemoval(d)
				})
			}},
		{"eui", func() string { return idText(h.ident.EUI64[:], "%x") }, nil},
		{"iopolicies", func() string { return strings.Join(policy.Names(), " ") }, nil},
		{"iopolicy", h.Policy, func(v string) error { return h.SetPolicy(strings.TrimSpace(v)) }},
		{"latency_batch_timeout",
			func() string { _, batch := latency(); return strconv.Itoa(int(batch / time.Millisecond)) },
			func(v string) error {
				return number("latency_batch_timeout", v, func(n int) error {
					d, err := units("latency_batch_timeout", n, time.Millisecond)
					if err != nil {
						return err
					}
					shift, _ := latency()
					return h.TuneLatency(shift, d)
				})
			}},
		{"latency_ewma_shift",
			func() string { shift, _ := latency(); return strconv.Itoa(shift) },
			func(v string) error {
				return number("latency_ewma_shift", v, func(n int) error {
					_, batch := latency()
					return h.TuneLatency(n, batch)
				})
			}},
		{"nguid", func() string { return idText(h.ident.NGUID[:], "%x") }, nil},
		{"size", func() string { return strconv.FormatInt(h.Size()/512, 10) }, nil},
		{"uuid", func() string {
			if h.ident.UUID == [16]byte{} {
				return ""
			}
			return nvme.FormatUUID(h.ident.UUID)
		}, nil},
		{"wwid", h.ident.String, nil},
	}
}

func idText(b []byte, format string) string {
	if !slices.ContainsFunc(b, func(v byte) bool { return v != 0 }) {
		return ""
	}
	return fmt.Sprintf(format, b)
}

// attributes returns those of a path.
func (p *Path) attributes() []attribute {
	return []attribute{
		{"address", p.member.ctrl.Address, nil},
		{"ana_grpid", func() string { _, g := p.ANA(); return strconv.FormatUint(uint64(g), 10) }, nil},
		{"ana_state", func() string { s, _ := p.ANA(); return s.String() }, nil},
		{"cntlid", func() string { return strconv.Itoa(int(p.member.ctrl.Identify().CNTLID)) }, nil},
		{"in_flight_bytes", func() string { return strconv.FormatUint(p.Stats().InFlight.Bytes, 10) }, nil},
		{"latency_stat", p.latencyText, nil},
		{"multipath_failover_count", func() string { return strconv.FormatUint(p.Stats().Failovers, 10) }, nil},
		{"numa_nodes", p.nodesText, nil},
		{"queue_depth", func() string { return strconv.FormatUint(p.Stats().InFlight.Count, 10) }, nil},
		{"relative_throughput", p.weightText, func(v string) error {
			return number("relative_throughput", v, p.SetRelativeThroughput)
		}},
		{"state", func() string { return p.member.ctrl.State().String() }, nil},
		{"transport", p.member.ctrl.Transport().Name, nil},
	}
}

// weightText is empty unless the weight is in use.
func (p *Path) weightText() string {
	if p.head.Policy() != policy.ServiceTime {
		return ""
	}
	return strconv.Itoa(p.RelativeThroughput())
}

// latencyText has a line for each kind of I/O: the number of I/Os, their mean and
// their largest latency in nanoseconds.
func (p *Path) latencyText() string {
	var b strings.Builder
	s := p.Stats()
	for dir := range policy.Dirs {
		l := s.Latency[dir]
		fmt.Fprintf(&b, "%v %d %d %d\n", dir, l.Count, l.Mean().Nanoseconds(), l.Max)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// nodesText lists the NUMA nodes from which the numa policy would take the path:
// those of the channels' cores that it is the nearest usable path to.
func (p *Path) nodesText() string {
	h := p.head
	h.sub.mu.Lock()
	defer h.sub.mu.Unlock()
	var nodes []int
	for _, c := range h.channels {
		if c != nil && !slices.Contains(nodes, c.cold.node) && h.nearest(c.cold.node) == p {
			nodes = append(nodes, c.cold.node)
		}
	}
	slices.Sort(nodes)
	var list []string
	for _, n := range nodes {
		list = append(list, strconv.Itoa(n))
	}
	return strings.Join(list, ",")
}

// nearest returns the usable path that is nearest to a NUMA node, optimized ones
// first.
func (h *Head) nearest(node int) *Path {
	var best *Path
	rank := func(p *Path) (nvme.ANAState, int) { return p.state, distance(sysfs, node, p.member.node) }
	for _, p := range h.paths {
		if !p.usable() {
			continue
		}
		if best == nil {
			best = p
			continue
		}
		s, d := rank(p)
		if bs, bd := rank(best); s < bs || s == bs && d < bd {
			best = p
		}
	}
	return best
}

// find returns the attribute of a name such as "iopolicy" or
// "nvme0c1n1/ana_state".
func (h *Head) find(name string) (attribute, error) {
	list := h.attributes()
	dir, base, within := strings.Cut(name, "/")
	if within {
		list = nil
		for _, p := range h.Paths() {
			if p.name == dir {
				list = p.attributes()
			}
		}
		name = base
	}
	for _, a := range list {
		if a.name == name {
			return a, nil
		}
	}
	return attribute{}, errNoAttribute
}

var errNoAttribute = errors.New("there is none of that name")

// Attribute returns the value of an attribute as text: those of the head by their
// names, such as iopolicy, and those of a path below the path's name, such as
// nvme0c1n1/queue_depth. The error wraps ErrAttribute.
func (h *Head) Attribute(name string) (string, error) {
	a, err := h.find(name)
	if err != nil {
		return "", fmt.Errorf("%w: %s/%s: %w", ErrAttribute, h.name, name, err)
	}
	return a.get(), nil
}

// SetAttribute sets an attribute from text: iopolicy, delayed_removal_secs,
// latency_ewma_shift and latency_batch_timeout (in milliseconds) of the head,
// relative_throughput of a path. The error wraps ErrAttribute, or what the method
// for the attribute returns.
func (h *Head) SetAttribute(name, value string) error {
	a, err := h.find(name)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s/%s: %w", ErrAttribute, h.name, name, err)
	case a.set == nil:
		return fmt.Errorf("%w: %s/%s is read only", ErrAttribute, h.name, name)
	}
	return a.set(value)
}
