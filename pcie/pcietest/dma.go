package pcietest

import (
	"fmt"
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// Fault is an access to memory that an IOMMU would have stopped: to an address
// that the driver has not mapped, or with bus mastering off. Nothing was read
// or written.
type Fault struct {
	IOVA   uint64
	Length uint64
	Write  bool   // by the controller to memory
	What   string // for example "data", "submission queue entry"
	QID    uint16 // of the command
	CID    uint16 // of the command, if there is one
}

// String tells of the fault.
func (f Fault) String() string {
	dir := "read"
	if f.Write {
		dir = "write"
	}
	return fmt.Sprintf("DMA %s of %d bytes at %#x refused: %s, queue %d, CID %#x", dir, f.Length, f.IOVA, f.What, f.QID, f.CID)
}

// maxFaults is how many faults are kept.
const maxFaults = 256

// Faults returns the first faults there were, up to 256, in order. A driver
// that works has none.
func (c *Controller) Faults() []Fault {
	c.lock()
	defer c.unlock()
	return slices.Clone(c.faults)
}

// ClearFaults forgets them.
func (c *Controller) ClearFaults() {
	c.lock()
	defer c.unlock()
	c.faults = nil
}

// fault records one.
func (c *Controller) fault(f Fault) {
	c.stats.Faults++
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, f)
	}
}

// mapping is memory of the driver that the controller may access.
type mapping struct {
	iova        uint64
	size        uint64
	b           []byte // nil: known, but out of reach
	read, write bool
	release     func() error // may be nil
}

func (m *mapping) last() uint64 { return m.iova + m.size - 1 }

// dmaTable has the mappings, by rising address.
type dmaTable struct {
	maps []mapping
	hit  int // where the last look-up ended
}

// search returns the index of the first mapping that ends at or after iova.
func (t *dmaTable) search(iova uint64) int {
	i, _ := slices.BinarySearchFunc(t.maps, iova, func(m mapping, v uint64) int {
		if m.last() < v {
			return -1
		}
		return 1
	})
	return i
}

// overlaps reports whether a range overlaps with a mapping.
func (t *dmaTable) overlaps(iova, last uint64) bool {
	i := t.search(iova)
	return i < len(t.maps) && t.maps[i].iova <= last
}

func (t *dmaTable) add(m mapping) {
	i := t.search(m.iova)
	t.maps = slices.Insert(t.maps, i, m)
	t.hit = 0
}

// take removes a mapping, which must be exactly one.
func (t *dmaTable) take(iova, size uint64) (mapping, bool) {
	i := t.search(iova)
	if i == len(t.maps) || t.maps[i].iova != iova || t.maps[i].size != size {
		return mapping{}, false
	}
	m := t.maps[i]
	t.maps = slices.Delete(t.maps, i, i+1)
	t.hit = 0
	return m, true
}

// find returns the memory at iova: up to n bytes, as many as its mapping has,
// or none.
func (t *dmaTable) find(iova, n uint64, write bool) []byte {
	if t.hit >= len(t.maps) || iova-t.maps[t.hit].iova >= t.maps[t.hit].size {
		t.hit = t.search(iova)
		if t.hit == len(t.maps) || iova < t.maps[t.hit].iova {
			return nil
		}
	}
	m := &t.maps[t.hit]
	if m.b == nil || write && !m.write || !write && !m.read {
		return nil
	}
	off := iova - m.iova
	return m.b[off : off+min(n, m.size-off)]
}

// use says what an access is for, as far as a controller memory buffer may not
// be good for it.
type use uint8

const (
	useSQ use = iota
	useCQ
	useList
	useRead  // data from the controller to the host
	useWrite // data to the controller
	useOther
)

var useNames = [...]string{
	useSQ: "submission queue entry", useCQ: "completion queue entry", useList: "PRP list or SGL segment",
	useRead: "data", useWrite: "data", useOther: "doorbell buffer",
}

func (u use) writes() bool { return u == useCQ || u == useRead || u == useOther }

// inCMB returns the part of the controller memory buffer at an address.
func (c *Controller) inCMB(iova, n uint64) []byte {
	if c.cmb == nil || !c.regs.cmbmsc.CMSE() {
		return nil
	}
	off, size := iova-c.regs.cmbmsc.CBA(), uint64(len(c.cmb.b))
	if off >= size {
		return nil
	}
	return c.cmb.b[off : off+min(n, size-off)]
}

// forCMB returns the status for the use of the controller memory buffer.
func (c *Controller) forCMB(u use) nvme.Status {
	cfg := &c.cfg.CMB
	if u == useSQ && cfg.NoSQ || u == useCQ && cfg.NoCQ || u == useList && cfg.NoLists ||
		u == useRead && cfg.NoReads || u == useWrite && cfg.NoWrites || u == useOther {
		return nvme.StatusInvalidUseOfCMB | nvme.StatusDNR
	}
	return 0
}

// memory returns what is at an address: up to n bytes, as many as there are in
// one piece. There is a status if there is nothing.
func (c *Controller) memory(iova, n uint64, u use) ([]byte, nvme.Status) {
	if c.cmb != nil {
		if b := c.inCMB(iova, n); b != nil {
			return b, c.forCMB(u)
		}
	}
	if c.master {
		if b := c.dma.find(iova, n, u.writes()); b != nil {
			return b, 0
		}
	}
	c.fault(Fault{IOVA: iova, Length: n, Write: u.writes(), What: useNames[u], QID: c.cur.qid, CID: c.cur.cid})
	return nil, nvme.StatusDataTransferError
}

// whole is memory that must be in one piece.
func (c *Controller) whole(iova, n uint64, u use) ([]byte, nvme.Status) {
	b, s := c.memory(iova, n, u)
	if s == 0 && uint64(len(b)) < n {
		c.fault(Fault{IOVA: iova, Length: n, Write: u.writes(), What: useNames[u], QID: c.cur.qid, CID: c.cur.cid})
		s = nvme.StatusDataTransferError
	}
	return b, s
}
