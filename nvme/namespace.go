package nvme

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/qpoll/qpoll/poller"
)

// Namespace is a namespace of one controller. It stays valid while the
// namespace exists with the same identity and format; when that ends, I/O fails
// with StatusInvalidNamespace or ErrNoNamespace. Its size may change. Methods
// may be called from any goroutine unless they say otherwise.
type Namespace struct {
	c     *Controller
	id    uint32
	ident NamespaceIdentity
	geo   atomic.Pointer[geometry]
	info  atomic.Pointer[IdentifyNamespace]
	gone  atomic.Bool
}

// Namespace returns the namespace nsid, identifying it on first use. The same
// handle comes back each time while the namespace's identity and format stay.
func (c *Controller) Namespace(ctx context.Context, nsid uint32) (*Namespace, error) {
	ns, err := c.namespace(ctx, nsid)
	return ns, c.opError(fmt.Sprintf("identify namespace %d", nsid), 0, err)
}

func (c *Controller) namespace(ctx context.Context, nsid uint32) (*Namespace, error) {
	for range 8 {
		known, checks := c.knownNamespace(nsid)
		if known != nil {
			return known, nil
		}
		ns, err := c.identifyNamespace(ctx, nsid, c.adminCommand)
		if err != nil {
			return nil, err
		}
		if ns = c.learn(ns, checks); ns != nil {
			return ns, nil
		}
	}
	return nil, fmt.Errorf("%w: namespace %d changes faster than it can be identified", ErrProtocol, nsid)
}

func (c *Controller) knownNamespace(nsid uint32) (ns *Namespace, checks uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ns = c.ns[nsid]; ns != nil && ns.gone.Load() {
		ns = nil
	}
	return ns, c.checks
}

// learn makes ns known, or returns who was faster. It returns nil if known
// namespaces were checked meanwhile, after a reconnect or an event: ns was not
// among them, and may be out of date.
func (c *Controller) learn(ns *Namespace, checks uint64) *Namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.ns[ns.id]; old != nil && !old.gone.Load() {
		return old
	}
	if c.checks != checks {
		return nil
	}
	c.ns[ns.id] = ns
	return ns
}

// sameAs reports whether now is the same namespace identified again. Without
// unique identifiers there is only the format to go by.
func (ns *Namespace) sameAs(now *Namespace) bool {
	if ns.ident.IsZero() && now.ident.IsZero() {
		return true
	}
	return ns.ident.Same(&now.ident)
}

// formattedAs reports whether blocks are still what they were. What was
// submitted under another format would move other data than was meant.
func (ns *Namespace) formattedAs(now *Namespace) bool {
	was, is := ns.geo.Load(), now.geo.Load()
	return was.xfer == is.xfer && was.metadata == is.metadata
}

// leave makes the handle useless: no I/O passes any more.
func (ns *Namespace) leave() {
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
	return ns.geo.Load().size()
}

// MaxBlocks returns the most blocks that one read or write command moves;
// larger transfers are split.
func (ns *Namespace) MaxBlocks() uint32 { return ns.geo.Load().oneCommand }

// Shared reports whether other controllers may have the namespace, too (NMIC).
func (ns *Namespace) Shared() bool { return ns.info.Load().NMIC&NMICShared != 0 }

// ReadOnly reports whether the namespace is write protected as a whole
// (NSATTR), as last read. Writes are sent all the same, and complete with what
// the controller says, usually StatusNamespaceWriteProtected.
func (ns *Namespace) ReadOnly() bool { return ns.info.Load().NSATTR&NSATTRWriteProtected != 0 }

// ANAGroup returns the ANA group identifier, 0 where there is none.
func (ns *Namespace) ANAGroup() uint32 { return ns.info.Load().ANAGRPID }

// usable returns the geometry of a namespace that takes I/O.
func (ns *Namespace) usable() (*geometry, error) {
	g := ns.geo.Load()
	switch {
	case g.gone:
		return nil, fmt.Errorf("%w: namespace %d went away", ErrNoNamespace, ns.id)
	case ns.ident.CSI != CSINVM:
		return nil, fmt.Errorf("%w: namespace %d has command set %d, not NVM", ErrUnsupported, ns.id, ns.ident.CSI)
	}
	return g, nil
}

// Queue makes an I/O queue pair of its own for this namespace on poller p, which
// must have been started, or be stepped by another goroutine: see
// Controller.OpenQueue, and QueuePair.Bind to share a queue pair. If p is nil,
// it is the controller's own poller.
func (ns *Namespace) Queue(ctx context.Context, p *poller.Poller, cfg QueueConfig) (*NamespaceQueue, error) {
	if _, err := ns.usable(); err != nil {
		return nil, err
	}
	qp, err := ns.c.OpenQueue(ctx, p, cfg)
	if err != nil {
		return nil, err
	}
	q, err := qp.Bind(ns)
	if err != nil { // it left meanwhile
		return nil, errors.Join(err, qp.Close(ctx))
	}
	return q, nil
}

// Passthrough sends one raw I/O command from any goroutine and waits for it, as
// Controller.Admin does for admin commands. The NSID is filled in if it is 0.
func (ns *Namespace) Passthrough(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	cpl, err := ns.passthrough(ctx, cmd, buf)
	if err != nil {
		err = ns.callError(fmt.Sprintf("command %#x, namespace %d", uint8(cmd.Opcode), ns.id), err)
	}
	return cpl, err
}

func (ns *Namespace) passthrough(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	if _, err := ns.usable(); err != nil {
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
