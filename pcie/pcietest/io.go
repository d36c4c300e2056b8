package pcietest

import (
	"errors"

	"github.com/qpoll/qpoll/nvme"
)

// io executes an I/O command.
func (c *Controller) io(cmd *nvme.Command) nvme.Status {
	switch cmd.Opcode {
	case nvme.OpRead:
		c.stats.Reads++
	case nvme.OpWrite:
		c.stats.Writes++
	default:
		c.stats.Others++
	}
	if cmd.Flags&nvme.FlagFuseMask != 0 {
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	if cmd.Opcode == nvme.OpFlush && cmd.NSID == nvme.NSIDAll {
		return c.flushAll()
	}
	if !knownIO(cmd.Opcode) || c.regs.cc.CSS() == nvme.CCCSSAdmin {
		return nvme.StatusInvalidOpcode | nvme.StatusDNR
	}
	n, s := c.accessible(cmd.NSID)
	if s != 0 {
		return s
	}
	switch cmd.Opcode {
	case nvme.OpFlush:
		return n.flush()
	case nvme.OpDatasetManagement:
		return c.datasetManagement(cmd, n)
	case nvme.OpCopy:
		return c.copyCommand(cmd, n)
	}
	return c.blocks(cmd, n)
}

// knownIO lists the I/O commands.
func knownIO(op nvme.Opcode) bool {
	switch op {
	case nvme.OpFlush, nvme.OpWrite, nvme.OpRead, nvme.OpCompare, nvme.OpWriteZeroes, nvme.OpDatasetManagement,
		nvme.OpVerify, nvme.OpCopy:
		return true
	}
	return false
}

// blocks executes a command on a range of blocks.
func (c *Controller) blocks(cmd *nvme.Command, n *namespace) nvme.Status {
	lba, count := cmd.SLBA(), uint64(cmd.Blocks())
	if lba >= n.blocks || count > n.blocks-lba {
		return nvme.StatusLBAOutOfRange | nvme.StatusDNR
	}
	if n.cfg.ReadOnly && (cmd.Opcode == nvme.OpWrite || cmd.Opcode == nvme.OpWriteZeroes) {
		return nvme.StatusNamespaceWriteProtected | nvme.StatusDNR
	}
	off, length := int64(lba<<n.shift), int64(count<<n.shift)
	switch cmd.Opcode {
	case nvme.OpWriteZeroes:
		return status(zero(n.cfg.Backend, off, length))
	case nvme.OpVerify:
		return 0
	case nvme.OpRead:
		return c.read(cmd, n, off, length)
	}
	return c.take(cmd, n, off, length)
}

func (c *Controller) read(cmd *nvme.Command, n *namespace, off, length int64) nvme.Status {
	if s := c.locate(cmd, int(length), useRead); s != 0 {
		return s
	}
	for _, b := range c.segs {
		k, err := n.cfg.Backend.ReadAt(b, off)
		if err := full(k, len(b), err); err != nil {
			return status(err)
		}
		off += int64(k)
	}
	return 0
}

// take executes a Write or a Compare.
func (c *Controller) take(cmd *nvme.Command, n *namespace, off, length int64) nvme.Status {
	if s := c.locate(cmd, int(length), useWrite); s != 0 {
		return s
	}
	for _, b := range c.segs {
		if cmd.Opcode == nvme.OpCompare {
			have := c.scratch(len(b))
			k, err := n.cfg.Backend.ReadAt(have, off)
			if err := full(k, len(b), err); err != nil {
				return status(err)
			}
			if string(have) != string(b) {
				return nvme.StatusCompareFailure | nvme.StatusDNR
			}
		} else if _, err := n.cfg.Backend.WriteAt(b, off); err != nil {
			return status(err)
		}
		off += int64(len(b))
	}
	return 0
}

// scratch returns n bytes of memory that is used until the next call.
func (c *Controller) scratch(n int) []byte {
	if cap(c.bounce) < n {
		c.bounce = make([]byte, n)
	}
	return c.bounce[:n]
}

// fetchData copies the n bytes of data of a command from the host.
func (c *Controller) fetchData(cmd *nvme.Command, n int) ([]byte, nvme.Status) {
	if s := c.locate(cmd, n, useWrite); s != 0 {
		return nil, s
	}
	b := c.scratch(n)[:0]
	for _, seg := range c.segs {
		b = append(b, seg...)
	}
	return b, 0
}

// sendData copies the beginning of data to the host: n bytes, zeros where there
// is less.
func (c *Controller) sendData(cmd *nvme.Command, data []byte, n int) nvme.Status {
	if s := c.locate(cmd, n, useRead); s != 0 {
		return s
	}
	for _, seg := range c.segs {
		k := copy(seg, data)
		clear(seg[k:])
		data = data[k:]
	}
	return 0
}

func (c *Controller) datasetManagement(cmd *nvme.Command, n *namespace) nvme.Status {
	d, err := nvme.ParseDSM(cmd)
	if err != nil {
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	b, s := c.fetchData(cmd, d.Ranges*16)
	if s != 0 {
		return s
	}
	ranges, err := nvme.ParseDSMRanges(b, d.Ranges)
	if err != nil {
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	for _, r := range ranges {
		if r.LBA > n.blocks || uint64(r.Length) > n.blocks-r.LBA {
			return nvme.StatusLBAOutOfRange | nvme.StatusDNR
		}
	}
	if !d.Deallocate {
		return 0
	}
	if n.cfg.ReadOnly {
		return nvme.StatusNamespaceWriteProtected | nvme.StatusDNR
	}
	for _, r := range ranges {
		if err := zero(n.cfg.Backend, int64(r.LBA<<n.shift), int64(r.Length)<<n.shift); err != nil {
			return status(err)
		}
	}
	return 0
}

// Limits of Copy, as they are reported: blocks of a source range, blocks in
// all, and ranges.
const (
	copyRangeLimit  = 1 << 15
	copyLimit       = 1 << 15
	copyRangesLimit = 128
)

func (c *Controller) copyCommand(cmd *nvme.Command, n *namespace) nvme.Status {
	d, err := nvme.ParseCopy(cmd)
	if err != nil || d.Format != nvme.CopyFormat0 {
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	if n.cfg.ReadOnly {
		return nvme.StatusNamespaceWriteProtected | nvme.StatusDNR
	}
	if d.Ranges > copyRangesLimit {
		return nvme.StatusCommandSizeLimitExceeded | nvme.StatusDNR
	}
	b, s := c.fetchData(cmd, d.Ranges*32)
	if s != 0 {
		return s
	}
	ranges, err := nvme.ParseCopyRanges(b, d.Ranges)
	if err != nil {
		return nvme.StatusInvalidField | nvme.StatusDNR
	}
	total := uint64(0)
	for i := range ranges {
		r := &ranges[i]
		count := uint64(r.NLB) + 1
		if r.SLBA >= n.blocks || count > n.blocks-r.SLBA {
			return nvme.StatusLBAOutOfRange | nvme.StatusDNR
		}
		if total += count; count > copyRangeLimit || total > copyLimit {
			return nvme.StatusCommandSizeLimitExceeded | nvme.StatusDNR
		}
	}
	if d.SDLBA >= n.blocks || total > n.blocks-d.SDLBA {
		return nvme.StatusLBAOutOfRange | nvme.StatusDNR
	}
	return c.copyRanges(n, ranges, d.SDLBA, total)
}

// copyRanges reads everything before it writes, so that ranges may overlap.
func (c *Controller) copyRanges(n *namespace, ranges []nvme.CopyRange, to, total uint64) nvme.Status {
	data := c.scratch(int(total << n.shift))
	rest := data
	for i := range ranges {
		r := &ranges[i]
		k := (int(r.NLB) + 1) << n.shift
		got, err := n.cfg.Backend.ReadAt(rest[:k], int64(r.SLBA<<n.shift))
		if err := full(got, k, err); err != nil {
			return status(err)
		}
		rest = rest[k:]
	}
	_, err := n.cfg.Backend.WriteAt(data, int64(to<<n.shift))
	return status(err)
}

func (c *Controller) flushAll() nvme.Status {
	for _, n := range c.spaces {
		if n.attached {
			if s := n.flush(); s != 0 {
				return s
			}
		}
	}
	return 0
}

func (n *namespace) flush() nvme.Status {
	if s, ok := n.cfg.Backend.(syncer); ok {
		return status(s.Sync())
	}
	return 0
}

// status is what a command fails with for an error of a backend.
func status(err error) nvme.Status {
	if err == nil {
		return 0
	}
	var s nvme.Status
	if errors.As(err, &s) {
		return s
	}
	return nvme.StatusInternalError
}
