package nvmet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/qpoll/qpoll/internal/guest"
)

// SubsystemConfig describes a subsystem. Fields of zero leave what the kernel
// chooses.
type SubsystemConfig struct {
	NQN      string
	Serial   string // up to 20 characters
	Model    string // up to 40 characters
	Firmware string // up to 8 characters
	IEEE     string // OUI, as 0x0050c2
	Version  string // NVMe version, as 1.4
	// Hosts are the NQNs of hosts that may connect. If there are none, any may.
	Hosts []string
	// CntlidMin and CntlidMax bound controller IDs.
	CntlidMin, CntlidMax uint16
	// QueuesMax bounds the I/O queues of a controller (attr_qid_max).
	QueuesMax uint16
	// PI lets the kernel offer protection information.
	PI bool
	// Attrs are further attributes of configfs.
	Attrs      map[string]string
	Namespaces []NamespaceConfig
}

// Subsystem is a subsystem of the target.
type Subsystem struct {
	t   *Target
	nqn string
}

// NQN returns the name of the subsystem.
func (s *Subsystem) NQN() string { return s.nqn }

func (s *Subsystem) dir() string { return subsystemDir(s.nqn) }

func subsystemDir(nqn string) string { return root + "/subsystems/" + nqn }
func hostDir(nqn string) string      { return root + "/hosts/" + nqn }

// AddSubsystem makes a subsystem with its namespaces. No port has it yet.
func (t *Target) AddSubsystem(ctx context.Context, c SubsystemConfig) (*Subsystem, error) {
	b, err := c.batch()
	if err != nil {
		return nil, err
	}
	if err := t.g.Apply(ctx, b); err != nil {
		return nil, fmt.Errorf("nvmet: subsystem %s: %w", c.NQN, err)
	}
	s := &Subsystem{t: t, nqn: c.NQN}
	for _, h := range c.Hosts {
		if err := s.AllowHost(ctx, h); err != nil {
			return nil, err
		}
	}
	for _, n := range c.Namespaces {
		if _, err := s.AddNamespace(ctx, n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (c *SubsystemConfig) batch() (*guest.Batch, error) {
	if c.NQN == "" || len(c.NQN) > 223 {
		return nil, fmt.Errorf("%w: subsystem NQN %q", ErrConfig, c.NQN)
	}
	dir := subsystemDir(c.NQN)
	b := new(guest.Batch)
	b.Mkdir(dir)
	text := func(k, v string) {
		if v != "" {
			b.Write(dir+"/"+k, v)
		}
	}
	number := func(k string, v uint16) {
		if v != 0 {
			text(k, strconv.Itoa(int(v)))
		}
	}
	text("attr_allow_any_host", flag(len(c.Hosts) == 0))
	text("attr_serial", c.Serial)
	text("attr_model", c.Model)
	text("attr_firmware", c.Firmware)
	text("attr_ieee_oui", c.IEEE)
	text("attr_version", c.Version)
	number("attr_cntlid_min", c.CntlidMin)
	number("attr_cntlid_max", c.CntlidMax)
	number("attr_qid_max", c.QueuesMax)
	if c.PI {
		text("attr_pi_enable", "1")
	}
	for _, k := range slices.Sorted(maps.Keys(c.Attrs)) {
		text(k, c.Attrs[k])
	}
	return b, nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// SetAttr writes an attribute, such as "attr_qid_max". The kernel refuses some
// while there are controllers, and ends the controllers for others.
func (s *Subsystem) SetAttr(ctx context.Context, name, value string) error {
	return s.t.g.WriteFile(ctx, s.dir()+"/"+name, value)
}

// Attr reads an attribute.
func (s *Subsystem) Attr(ctx context.Context, name string) (string, error) {
	return s.t.g.ReadAttr(ctx, s.dir()+"/"+name)
}

// SetAllowAnyHost lets every host connect, or only those of AllowHost. The
// kernel refuses to let every host in while there are such.
func (s *Subsystem) SetAllowAnyHost(ctx context.Context, any bool) error {
	return s.SetAttr(ctx, "attr_allow_any_host", flag(any))
}

// AllowHost lets the host with the NQN connect.
func (s *Subsystem) AllowHost(ctx context.Context, nqn string) error {
	var b guest.Batch
	b.MkdirAll(hostDir(nqn))
	b.Symlink(hostDir(nqn), s.dir()+"/allowed_hosts/"+nqn)
	return s.t.g.Apply(ctx, &b)
}

// DisallowHost takes back what AllowHost allowed. Controllers of that host stay
// until they connect again.
func (s *Subsystem) DisallowHost(ctx context.Context, nqn string) error {
	var b guest.Batch
	b.Remove(s.dir() + "/allowed_hosts/" + nqn)
	return s.t.g.Apply(ctx, &b)
}

// Remove removes the subsystem, which no port may have any more, with the
// namespaces that are left in it. Their backends stay.
func (s *Subsystem) Remove(ctx context.Context) error {
	files, err := s.t.g.Glob(ctx, s.dir()+"/namespaces/*", s.dir()+"/allowed_hosts/*")
	if err != nil {
		return err
	}
	var b guest.Batch
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if files[p].Link == "" {
			b.Write(p+"/enable", "0")
		}
		b.Remove(p)
	}
	b.Remove(s.dir())
	err = s.t.g.Apply(ctx, &b)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("nvmet: subsystem %s is gone: %w", s.nqn, err)
	}
	return err
}
