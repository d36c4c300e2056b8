package target

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/qpoll/qpoll/tcp/target/backend"
)

// Namespace is a namespace of a subsystem.
type Namespace struct {
	sub  *Subsystem
	nsid uint32

	// Under the target's lock.
	cfg      NamespaceConfig
	blocks   uint64
	channels int // open ones, of all workers
	removed  bool
	disowned bool // does not count among the users of its backend
}

// ID returns the NSID.
func (n *Namespace) ID() uint32 { return n.nsid }

// Blocks returns the capacity in logical blocks.
func (n *Namespace) Blocks() uint64 {
	n.sub.t.mu.Lock()
	defer n.sub.t.mu.Unlock()
	return n.blocks
}

// UUID returns the UUID, also one that was made up.
func (n *Namespace) UUID() [16]byte { return n.cfg.UUID }

// identify makes up a UUID for a namespace without any identifier: version 8,
// from the names of both.
func (n *Namespace) identify() {
	c := &n.cfg
	if c.UUID != [16]byte{} || c.NGUID != [16]byte{} || c.EUI64 != [8]byte{} {
		return
	}
	sum := sha256.Sum256(binary.LittleEndian.AppendUint32([]byte(n.sub.cfg.NQN), n.nsid))
	copy(c.UUID[:], sum[:])
	c.UUID[6] = c.UUID[6]&0x0f | 0x80
	c.UUID[8] = c.UUID[8]&0x3f | 0x80
}

// measure takes the size of the backend.
func (n *Namespace) measure() {
	n.blocks = uint64(max(n.cfg.Backend.Info().Size, 0)) / uint64(n.cfg.BlockSize)
}

// Resize changes the capacity to size bytes, rounded down to whole blocks.
// Hosts are told. It fails if the backend cannot be resized.
func (n *Namespace) Resize(size int64) error {
	r, ok := n.cfg.Backend.(backend.Resizer)
	if !ok {
		return fmt.Errorf("%w: %T cannot be resized", ErrConfig, n.cfg.Backend)
	}
	if size < int64(n.cfg.BlockSize) {
		return bad("namespace of %d bytes", size)
	}
	t := n.sub.t
	t.mu.Lock()
	gone := n.removed
	t.mu.Unlock()
	if gone {
		return ErrClosed
	}
	// The backend may take its time; it checks ranges by itself.
	if err := r.Resize(size); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n.measure()
	n.sub.changed()
	n.sub.namespaceChanged(n.nsid)
	return nil
}

// SetReadOnly makes writes fail, or stops that. Hosts are told.
func (n *Namespace) SetReadOnly(on bool) {
	n.change(func() {
		n.cfg.ReadOnly = on
		n.sub.namespaceChanged(n.nsid)
	})
}

// SetANAGroup moves the namespace to another ANA group. Hosts are told by an
// Asymmetric Namespace Access Change alone, as Base Specification 5.1.2 has it.
func (n *Namespace) SetANAGroup(group uint32) error {
	if group < 1 || group > n.sub.cfg.ANAGroups {
		return bad("ANA group %d of %d", group, n.sub.cfg.ANAGroups)
	}
	n.change(func() {
		n.cfg.ANAGroup = group
		n.sub.anaChanges++
		n.sub.anaChanged(nil)
	})
	return nil
}

// change changes something about the namespace unless it is gone.
func (n *Namespace) change(f func()) {
	n.sub.t.mu.Lock()
	defer n.sub.t.mu.Unlock()
	if n.removed {
		return
	}
	f()
	n.sub.changed()
}

// Remove takes the namespace out of its subsystem. Hosts are told. Commands
// that have arrived are still executed; the backend is closed after the last
// one.
func (n *Namespace) Remove() {
	s := n.sub
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if at := slices.Index(s.namespaces, n); at >= 0 {
		s.remove(at)
		s.namespaceChanged(n.nsid)
	}
}
