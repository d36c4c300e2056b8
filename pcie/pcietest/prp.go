package pcietest

import (
	"encoding/binary"

	"github.com/qpoll/qpoll/nvme"
)

// locate finds the n bytes of data of a command, and leaves them in c.segs.
func (c *Controller) locate(cmd *nvme.Command, n int, u use) nvme.Status {
	c.segs = c.segs[:0]
	if n == 0 {
		return 0
	}
	if n > c.cfg.MaxTransfer {
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	switch psdt := cmd.Flags & nvme.FlagPSDTMask; {
	case psdt == 0:
		return c.locatePRP(cmd.DPTR, uint64(n), u)
	case psdt == nvme.FlagPSDTMask || c.cfg.NoSGL || c.cur.qid == 0:
		// Admin commands have PRPs, over PCIe.
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	return c.locateSGL(cmd.SGL(), uint64(n), u)
}

// add adds the memory at an address to c.segs, joined to the last segment where
// it goes on from there.
func (c *Controller) add(iova, n uint64, u use) nvme.Status {
	for n > 0 {
		b, s := c.memory(iova, n, u)
		if s != 0 {
			return s
		}
		iova, n = iova+uint64(len(b)), n-uint64(len(b))
		c.segs = join(c.segs, b)
	}
	return 0
}

// join appends a segment, to the last one if they are one piece of memory.
func join(segs [][]byte, b []byte) [][]byte {
	if k := len(segs); k > 0 {
		last := segs[k-1]
		if end := len(last); cap(last)-end >= len(b) && &last[:end+1][end] == &b[0] {
			segs[k-1] = last[:end+len(b)]
			return segs
		}
	}
	return append(segs, b)
}

const prpOffset = nvme.StatusPRPOffsetInvalid | nvme.StatusDNR

// locatePRP follows PRP entries (Base Specification 4.3.1).
func (c *Controller) locatePRP(prp [2]uint64, n uint64, u use) nvme.Status {
	page := uint64(c.page)
	if prp[0]&3 != 0 {
		return prpOffset
	}
	first := min(n, page-prp[0]&(page-1))
	if s := c.add(prp[0], first, u); s != 0 || first == n {
		return s
	}
	n -= first
	if n > page {
		return c.locateList(prp[1], n, u)
	}
	if prp[1]&(page-1) != 0 {
		return prpOffset
	}
	return c.add(prp[1], n, u)
}

// locateList follows a chain of PRP lists. The first may begin within a page;
// the last entry of a page that is not enough is the address of the next list.
func (c *Controller) locateList(list, n uint64, u use) nvme.Status {
	page := uint64(c.page)
	if list&7 != 0 {
		return prpOffset
	}
	for {
		room := (page - list&(page-1)) / 8
		need := (n + page - 1) / page
		chained := need > room
		b, s := c.whole(list, min(need, room)*8, useList)
		if s != 0 {
			return s
		}
		for i := range min(need, room) {
			entry := binary.LittleEndian.Uint64(b[8*i:])
			if entry&(page-1) != 0 {
				return prpOffset
			}
			if chained && i == room-1 {
				list = entry
				break
			}
			k := min(n, page)
			if s := c.add(entry, k, u); s != 0 {
				return s
			}
			n -= k
		}
		if n == 0 {
			return 0
		}
	}
}
