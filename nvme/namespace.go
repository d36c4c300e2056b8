package nvme

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/qpoll/qpoll/poller"
)

// Namespace is a namespace of one controller. It stays valid while the
// namespace exists with the same identity; when that ends, I/O fails with
// StatusInvalidNamespace or ErrNoNamespace. Methods may be called from
// any goroutine unless they say otherwise.
type Namespace struct {
	c     *Controller
	id    uint32
	ident NamespaceIdentity
	geo   atomic.Pointer[geometry]
	info  atomic.Pointer[IdentifyNamespace]
	gone  atomic.Bool
}

// Namespace returns the namespace nsid, identifying it on first use. The same
// handle comes back each time while the namespace's identity stays.
func (c *Controller) Namespace(ctx context.Context, nsid uint32) (*Namespace, error) {
	c.mu.Lock()
	ns := c.ns[nsid]
	c.mu.Unlock()
	if ns != nil && !ns.gone.Load() {
		return ns, nil
	}
	ns, err := c.identifyNamespace(ctx, nsid, c.Admin)
	if err != nil {
		return nil, c.opError(fmt.Sprintf("identify namespace %d", nsid), 0, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.ns[nsid]; old != nil && !old.gone.Load() {
		return old, nil
	}
	c.ns[nsid] = ns
	return ns, nil
}

// identifyNamespace reads CNS 00h and, where there are any, the descriptors of
// CNS 03h and the limits of the command set.
func (c *Controller) identifyNamespace(ctx context.Context, nsid uint32, do adminFunc) (*Namespace, error) {
	if nsid == 0 || nsid > 0xfffffffe {
		return nil, fmt.Errorf("%w: NSID %#x is not valid", ErrNoNamespace, nsid)
	}
	buf := make([]byte, IdentifyDataSize)
	cmd := Command{Opcode: AdminIdentify, NSID: nsid, CDW10: uint32(CNSNamespace)}
	if _, err := do(ctx, &cmd, buf); err != nil {
		if errors.Is(err, StatusInvalidNamespace) {
			return nil, fmt.Errorf("%w: %w", ErrNoNamespace, err)
		}
		return nil, err
	}
	info := new(IdentifyNamespace)
	if err := info.UnmarshalBinary(buf); err != nil {
		return nil, err
	}
	if info.NSZE == 0 {
		return nil, fmt.Errorf("%w: namespace %d is not active", ErrNoNamespace, nsid)
	}
	ns := &Namespace{c: c, id: nsid}
	ns.ident = NamespaceIdentity{EUI64: info.EUI64, NGUID: info.NGUID}
	if err := c.describeNamespace(ctx, ns, do); err != nil {
		return nil, err
	}
	g, err := c.geometry(ctx, ns, info, do)
	if err != nil {
		return nil, err
	}
	ns.info.Store(info)
	ns.geo.Store(g)
	return ns, nil
}

// describeNamespace reads the identification descriptor list. Controllers
// before 1.3 have none, and some reject it: then CNS 00h is all there is.
func (c *Controller) describeNamespace(ctx context.Context, ns *Namespace, do adminFunc) error {
	buf := make([]byte, IdentifyDataSize)
	cmd := Command{Opcode: AdminIdentify, NSID: ns.id, CDW10: uint32(CNSNamespaceDescriptors)}
	_, err := do(ctx, &cmd, buf)
	var st Status
	if errors.As(err, &st) && !st.IsPath() && !st.OK() && st.SCT() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	d, err := ParseNamespaceDescriptors(buf)
	if err != nil {
		return err
	}
	if d.EUI64 == [8]byte{} {
		d.EUI64 = ns.ident.EUI64
	}
	if d.NGUID == [16]byte{} {
		d.NGUID = ns.ident.NGUID
	}
	ns.ident = d
	return nil
}

// recheckNamespaces makes sure, after a reconnect and before any I/O goes out,
// that the namespaces in use are still the same.
func (c *Controller) recheckNamespaces(ctx context.Context) error {
	return c.recheck(ctx, nil, c.admin.DoInternal)
}

// refreshNamespaces is recheckNamespaces for some (nil: all) on a live
// controller.
func (c *Controller) refreshNamespaces(ctx context.Context, list []uint32) error {
	return c.recheck(ctx, list, c.Admin)
}

func (c *Controller) recheck(ctx context.Context, list []uint32, do adminFunc) error {
	c.mu.Lock()
	var known []*Namespace
	for _, ns := range c.ns {
		if !ns.gone.Load() && (list == nil || slices.Contains(list, ns.id)) {
			known = append(known, ns)
		}
	}
	c.mu.Unlock()
	for _, ns := range known {
		now, err := c.identifyNamespace(ctx, ns.id, do)
		switch {
		case errors.Is(err, ErrNoNamespace):
			ns.leave("namespace gone")
		case err != nil:
			return c.opError(fmt.Sprintf("identify namespace %d", ns.id), 0, err)
		case !ns.sameAs(now):
			ns.leave("namespace replaced by another")
		default:
			ns.info.Store(now.info.Load())
			ns.geo.Store(now.geo.Load())
		}
	}
	return nil
}

// sameAs reports whether now is the same namespace identified again. Without
// unique identifiers there is only the format to go by.
func (ns *Namespace) sameAs(now *Namespace) bool {
	if ns.ident.IsZero() && now.ident.IsZero() {
		return ns.geo.Load().xfer == now.geo.Load().xfer
	}
	return ns.ident.Same(&now.ident)
}

// leave makes the handle useless: no I/O passes any more.
func (ns *Namespace) leave(why string) {
	ns.c.cfg.Logger.Warn(why, "controller", ns.c.t.Address(), "nsid", ns.id)
	g := *ns.geo.Load()
	g.blocks, g.gone = 0, true
	ns.geo.Store(&g)
	ns.gone.Store(true)
}

// ID returns the namespace identifier.
func (ns *Namespace) ID() uint32 { return ns.id }

// Controller returns the controller that the namespace is reached through.
func (ns *Namespace) Controller() *Controller { return ns.c }

// IDs returns the unique identifiers.
func (ns *Namespace) IDs() NamespaceIdentity { return ns.ident }

// Identify returns the Identify Namespace data as last read. The caller must
// not change it.
func (ns *Namespace) Identify() *IdentifyNamespace { return ns.info.Load() }

// Gone reports whether the namespace went away or changed its identity.
func (ns *Namespace) Gone() bool { return ns.gone.Load() }

// BlockSize returns the bytes per logical block as transferred: the data size,
// and the metadata size where the format interleaves metadata.
func (ns *Namespace) BlockSize() int { return int(ns.geo.Load().xfer) }

// Blocks returns the size in logical blocks (NSZE).
func (ns *Namespace) Blocks() uint64 { return ns.geo.Load().blocks }

// Size returns the size in bytes.
func (ns *Namespace) Size() int64 {
	g := ns.geo.Load()
	return int64(g.blocks * uint64(g.xfer))
}

// MaxBlocks returns the most blocks that one read or write command moves;
// larger transfers are split.
func (ns *Namespace) MaxBlocks() uint32 { return ns.geo.Load().oneCommand }

// Shared reports whether other controllers may have the namespace, too (NMIC).
func (ns *Namespace) Shared() bool { return ns.info.Load().NMIC&NMICShared != 0 }

// ANAGroup returns the ANA group identifier, 0 where there is none.
func (ns *Namespace) ANAGroup() uint32 { return ns.info.Load().ANAGRPID }

func (ns *Namespace) usable() error {
	switch {
	case ns.gone.Load():
		return fmt.Errorf("%w: namespace %d went away", ErrNoNamespace, ns.id)
	case ns.ident.CSI != CSINVM:
		return fmt.Errorf("%w: namespace %d has command set %d, not NVM", ErrUnsupported, ns.id, ns.ident.CSI)
	}
	return nil
}

// Queue makes an I/O queue pair of its own for this namespace on poller p. See
// Controller.OpenQueue and QueuePair.Bind to share one.
func (ns *Namespace) Queue(ctx context.Context, p *poller.Poller, cfg QueueConfig) (*NamespaceQueue, error) {
	if err := ns.usable(); err != nil {
		return nil, err
	}
	qp, err := ns.c.OpenQueue(ctx, p, cfg)
	if err != nil {
		return nil, err
	}
	return qp.Bind(ns)
}

// Passthrough sends one raw I/O command from any goroutine and waits for it, as
// Controller.Admin does for admin commands. The NSID is filled in if it is 0.
func (ns *Namespace) Passthrough(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	if err := ns.usable(); err != nil {
		return Completion{}, err
	}
	qp, err := ns.c.blockingQueue(ctx)
	if err != nil {
		return Completion{}, err
	}
	raw := *cmd
	if raw.NSID == 0 {
		raw.NSID = ns.id
	}
	return ns.c.passthrough(ctx, qp, ns, &raw, buf)
}

// Close closes the queue pair under q; see QueuePair.Close.
func (q *NamespaceQueue) Close(ctx context.Context) error { return q.qp.Close(ctx) }
