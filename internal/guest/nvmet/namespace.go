package nvmet

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/qpoll/qpoll/internal/guest"
)

// NamespaceConfig describes a namespace. Fields of zero leave what the kernel
// chooses.
type NamespaceConfig struct {
	NSID    uint32 // from 1
	Backend Backend
	UUID    string // the kernel makes one up by default
	NGUID   string // in the format of a UUID
	// ANAGroup is from 1; default 1. Ports need the group too, see PortConfig.
	ANAGroup uint32
	// Disabled leaves the namespace invisible to hosts until Enable.
	Disabled bool
	// Direct makes a File bypass the page cache.
	Direct bool
}

// Namespace is a namespace of a subsystem.
type Namespace struct {
	s    *Subsystem
	nsid uint32
	path string
	undo func(context.Context) error
}

// NSID returns the number of the namespace.
func (n *Namespace) NSID() uint32 { return n.nsid }

// Path returns the device or file behind the namespace, in the guest.
func (n *Namespace) Path() string { return n.path }

func (n *Namespace) dir() string { return namespaceDir(n.s.nqn, n.nsid) }

func namespaceDir(nqn string, nsid uint32) string {
	return subsystemDir(nqn) + "/namespaces/" + strconv.FormatUint(uint64(nsid), 10)
}

// AddNamespace makes a namespace and its backend.
func (s *Subsystem) AddNamespace(ctx context.Context, c NamespaceConfig) (*Namespace, error) {
	if c.NSID == 0 || c.Backend == nil {
		return nil, fmt.Errorf("%w: namespace %d with backend %v", ErrConfig, c.NSID, c.Backend)
	}
	path, undo, err := c.Backend.create(ctx, s.t, s.t.nextBackend())
	if err != nil {
		return nil, fmt.Errorf("nvmet: backend of namespace %d of %s: %w", c.NSID, s.nqn, err)
	}
	if err := s.t.g.Apply(ctx, c.batch(s.nqn, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("nvmet: namespace %d of %s: %w", c.NSID, s.nqn, err), undo(ctx))
	}
	return &Namespace{s: s, nsid: c.NSID, path: path, undo: undo}, nil
}

func (c *NamespaceConfig) batch(nqn, path string) *guest.Batch {
	dir := namespaceDir(nqn, c.NSID)
	b := new(guest.Batch)
	b.Mkdir(dir)
	b.Write(dir+"/device_path", path)
	if c.UUID != "" {
		b.Write(dir+"/device_uuid", c.UUID)
	}
	if c.NGUID != "" {
		b.Write(dir+"/device_nguid", c.NGUID)
	}
	if c.ANAGroup != 0 {
		b.Write(dir+"/ana_grpid", strconv.FormatUint(uint64(c.ANAGroup), 10))
	}
	if _, file := c.Backend.(File); file && !c.Direct {
		b.Write(dir+"/buffered_io", "1")
	}
	if !c.Disabled {
		b.Write(dir+"/enable", "1")
	}
	return b
}

// Enable makes the namespace visible to hosts.
func (n *Namespace) Enable(ctx context.Context) error { return n.SetAttr(ctx, "enable", "1") }

// Disable hides the namespace. Commands for it then fail with Invalid Namespace
// or Format.
func (n *Namespace) Disable(ctx context.Context) error { return n.SetAttr(ctx, "enable", "0") }

// SetANAGroup moves the namespace to another ANA group.
func (n *Namespace) SetANAGroup(ctx context.Context, group uint32) error {
	return n.SetAttr(ctx, "ana_grpid", strconv.FormatUint(uint64(group), 10))
}

// Revalidate makes the target look at the size of the backend again, and tell
// hosts if it has changed.
func (n *Namespace) Revalidate(ctx context.Context) error {
	return n.SetAttr(ctx, "revalidate_size", "1")
}

// SetAttr writes an attribute of the namespace, such as "device_uuid".
func (n *Namespace) SetAttr(ctx context.Context, name, value string) error {
	return n.s.t.g.WriteFile(ctx, n.dir()+"/"+name, value)
}

// Attr reads an attribute of the namespace.
func (n *Namespace) Attr(ctx context.Context, name string) (string, error) {
	return n.s.t.g.ReadAttr(ctx, n.dir()+"/"+name)
}

// Remove removes the namespace and its backend.
func (n *Namespace) Remove(ctx context.Context) error {
	var b guest.Batch
	b.Write(n.dir()+"/enable", "0")
	b.Remove(n.dir())
	if err := n.s.t.g.Apply(ctx, &b); err != nil {
		return err
	}
	return n.undo(ctx)
}
