package pcietest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// namespace is one namespace.
type namespace struct {
	nsid     uint32
	cfg      NamespaceConfig
	blocks   uint64
	shift    uint8
	attached bool
	managed  bool // made by Namespace Management
	own      bool // the backend is ours
}

// formats are the block sizes that Format NVM can set, by index.
var formats = [...]uint8{9, 12}

func (n *namespace) format() uint8 {
	return uint8(max(0, slices.Index(formats[:], n.shift)))
}

func (n *namespace) close() error {
	if cl, ok := n.cfg.Backend.(io.Closer); ok && n.own {
		return cl.Close()
	}
	return nil
}

// search returns where the namespace with an NSID is, or is to go.
func (c *Controller) search(nsid uint32) (int, bool) {
	return slices.BinarySearchFunc(c.spaces, nsid, func(n *namespace, id uint32) int {
		switch {
		case n.nsid < id:
			return -1
		case n.nsid > id:
			return 1
		}
		return 0
	})
}

// find returns the namespace with an NSID, or nil.
func (c *Controller) find(nsid uint32) *namespace {
	if at, ok := c.search(nsid); ok {
		return c.spaces[at]
	}
	return nil
}

// attached returns the namespace if it is attached to the controller, or nil.
func (c *Controller) attached(nsid uint32) *namespace {
	if n := c.find(nsid); n != nil && n.attached {
		return n
	}
	return nil
}

// accessible returns the namespace that an I/O command is for.
func (c *Controller) accessible(nsid uint32) (*namespace, nvme.Status) {
	n := c.attached(nsid)
	if n == nil {
		if c.valid(nsid) {
			return nil, nvme.StatusInvalidField | nvme.StatusDNR
		}
		return nil, nvme.StatusInvalidNamespace | nvme.StatusDNR
	}
	return n, c.anaStatus(n)
}

// valid reports whether an NSID is one that a namespace can have.
func (c *Controller) valid(nsid uint32) bool { return nsid != 0 && nsid <= c.cfg.MaxNamespaces }

// free returns the lowest NSID that no namespace has, or 0.
func (c *Controller) freeNSID() uint32 {
	id := uint32(1)
	for _, n := range c.spaces {
		if n.nsid != id {
			break
		}
		id++
	}
	if id > c.cfg.MaxNamespaces {
		return 0
	}
	return id
}

// addNamespace makes a namespace.
func (c *Controller) addNamespace(cfg NamespaceConfig, managed bool) (*namespace, error) {
	if cfg.NSID == 0 {
		cfg.NSID = c.freeNSID()
	}
	at, taken := c.search(cfg.NSID)
	if !c.valid(cfg.NSID) || taken {
		return nil, bad("namespace %d of %d, or there is one already", cfg.NSID, c.cfg.MaxNamespaces)
	}
	cfg.BlockSize = or(cfg.BlockSize, 512)
	cfg.Size = or(cfg.Size, DefaultSize)
	cfg.ANAGroup = or(cfg.ANAGroup, 1)
	shift := uint8(bits.TrailingZeros32(cfg.BlockSize))
	if cfg.BlockSize != 1<<shift || !slices.Contains(formats[:], shift) || cfg.ANAGroup > anaGroups {
		return nil, bad("namespace of blocks of %d bytes, ANA group %d", cfg.BlockSize, cfg.ANAGroup)
	}
	n := &namespace{nsid: cfg.NSID, attached: !cfg.Detached, shift: shift, managed: managed}
	if cfg.Backend == nil {
		m, err := NewMemory(cfg.Size)
		if err != nil {
			return nil, err
		}
		cfg.Backend, n.own = m, true
	}
	n.blocks = uint64(max(0, cfg.Backend.Size())) >> shift
	if cfg.UUID == [16]byte{} && cfg.NGUID == [16]byte{} && cfg.EUI64 == [8]byte{} {
		cfg.UUID = madeUUID(c.cfg.NQN, cfg.NSID)
	}
	n.cfg = cfg
	if n.blocks == 0 {
		return nil, errors.Join(bad("namespace of less than a block"), n.close())
	}
	c.spaces = slices.Insert(c.spaces, at, n)
	return n, nil
}

// madeUUID is a UUID of version 8 made from a name and a number.
func madeUUID(name string, nsid uint32) (id [16]byte) {
	h := sha256.Sum256(binary.LittleEndian.AppendUint32([]byte(name), nsid))
	copy(id[:], h[:])
	id[6], id[8] = id[6]&0xf|0x80, id[8]&0x3f|0x80
	return id
}

// AddNamespace adds a namespace while the controller is in use, and returns its
// NSID. If it is attached, hosts that have asked for it are told.
func (c *Controller) AddNamespace(cfg NamespaceConfig) (uint32, error) {
	c.lock()
	defer c.unlock()
	n, err := c.addNamespace(cfg, false)
	if err != nil {
		return 0, err
	}
	if n.attached {
		c.changed(n.nsid)
	}
	return n.nsid, nil
}

// RemoveNamespace removes a namespace. A backend that was given to the
// controller stays open.
func (c *Controller) RemoveNamespace(nsid uint32) error {
	c.lock()
	defer c.unlock()
	at, ok := c.search(nsid)
	if !ok {
		return fmt.Errorf("%w: no namespace %d", ErrConfig, nsid)
	}
	return c.removeNamespace(at)
}

func (c *Controller) removeNamespace(at int) error {
	n := c.spaces[at]
	c.spaces = slices.Delete(c.spaces, at, at+1)
	if n.attached {
		c.changed(n.nsid)
	}
	return n.close()
}

// SetReadOnly makes the writes of a namespace fail, or not any more.
func (c *Controller) SetReadOnly(nsid uint32, on bool) error {
	c.lock()
	defer c.unlock()
	n := c.find(nsid)
	if n == nil {
		return fmt.Errorf("%w: no namespace %d", ErrConfig, nsid)
	}
	n.cfg.ReadOnly = on
	c.changed(nsid)
	return nil
}

// unallocated is the capacity in bytes that namespace management has left.
func (c *Controller) unallocated() int64 {
	left := c.cfg.Capacity
	for _, n := range c.spaces {
		if n.managed {
			left -= n.cfg.Backend.Size()
		}
	}
	return left
}

// total is the capacity in bytes of all there is.
func (c *Controller) total() int64 {
	sum := c.unallocated()
	for _, n := range c.spaces {
		sum += n.cfg.Backend.Size()
	}
	return sum
}
