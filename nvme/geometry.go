package nvme

import (
	"context"
	"fmt"
	"math"
)

// geometry is what submission needs to know about a namespace. It never
// changes; a changed namespace gets a new one.
type geometry struct {
	xfer       uint32 // bytes per block that move
	metadata   uint16 // of them, bytes of metadata
	oneCommand uint32 // blocks per read or write command
	boundary   uint32 // blocks; commands should not cross a multiple; 0: none
	nsid       uint32
	blocks     uint64

	zeroes     uint64 // blocks per Write Zeroes, 0: not supported
	verify     uint64 // blocks per Verify, 0: not supported
	compare    bool
	deallocate bool
	dsmRanges  int    // ranges per Dataset Management
	dsmRange   uint64 // blocks per range
	dsmTotal   uint64 // blocks per command
	gone       bool   // the namespace is no more; blocks is 0
}

// size returns the size in bytes.
func (g *geometry) size() int64 { return int64(g.blocks * uint64(g.xfer)) }

// maxNLB is the most blocks that the 16-bit field NLB can ask for.
const maxNLB = 1 << 16

// geometry works out the limits of a namespace from Identify data (NVM Command
// Set Specification 4.1.5) and the transport.
func (c *Controller) geometry(ctx context.Context, ns *Namespace, info *IdentifyNamespace, do adminFunc) (*geometry, error) {
	f, err := info.Format()
	if err != nil {
		return nil, violation(ns.id, err)
	}
	g := &geometry{xfer: 1 << f.LBADS, nsid: ns.id, blocks: info.NSZE}
	if f.MS != 0 && !info.ExtendedMetadata() {
		return nil, fmt.Errorf("%w: namespace %d: metadata in a buffer of its own", ErrUnsupported, ns.id)
	}
	g.metadata = f.MS
	g.xfer += uint32(f.MS)
	if g.blocks > math.MaxInt64/uint64(g.xfer) {
		return nil, fmt.Errorf("%w: namespace %d: %d blocks of %d bytes", ErrProtocol, ns.id, g.blocks, g.xfer)
	}
	g.oneCommand = maxNLB
	if m := c.MaxTransfer(); m != 0 {
		g.oneCommand = min(g.oneCommand, m/g.xfer)
	}
	g.oneCommand = min(g.oneCommand, math.MaxUint32/2/g.xfer)
	if g.oneCommand == 0 {
		return nil, fmt.Errorf("%w: namespace %d: a block of %d bytes exceeds the largest transfer of %d", ErrProtocol, ns.id, g.xfer, c.MaxTransfer())
	}
	if g.boundary = uint32(info.NOIOB); g.boundary == 0 {
		g.boundary = c.stripe() >> f.LBADS
	}
	g.compare = c.id.Load().ONCS&ONCSCompare != 0
	return g, c.commandSetLimits(ctx, g, do)
}

// commandSetLimits applies CNS 06h for the NVM command set, which few
// controllers before 2.0 have. Where a bit of ONCS is clear, a limit tells that
// the command is supported within it.
func (c *Controller) commandSetLimits(ctx context.Context, g *geometry, do adminFunc) error {
	var l IdentifyControllerNVM
	have := c.asksFor(CNSControllerCS)
	if have {
		buf := make([]byte, IdentifyDataSize)
		cmd := Command{Opcode: AdminIdentify, CDW10: uint32(CNSControllerCS)}
		_, err := do(ctx, &cmd, buf)
		if have = !rejected(err); have && err != nil {
			return err
		}
		if have {
			if err := l.UnmarshalBinary(buf); err != nil {
				return violation(g.nsid, err)
			}
		}
	}
	g.applyLimits(&l, c.id.Load().ONCS, c.Capabilities().MinPageSize())
	if !have {
		// Write Zeroes without a limit of its own is bounded as transfers are:
		// controllers that turn it into writes do so in their buffers.
		g.zeroes = min(g.zeroes, uint64(g.oneCommand))
	}
	return nil
}

func (g *geometry) applyLimits(l *IdentifyControllerNVM, oncs uint16, minPage uint32) {
	limit := func(supported bool, v uint8) uint64 {
		if !supported && v == 0 {
			return 0
		}
		if size := SizeLimit(v, minPage); size != 0 {
			return min(maxNLB, max(1, size/uint64(g.xfer)))
		}
		return maxNLB
	}
	g.zeroes = limit(oncs&ONCSWriteZeroes != 0, l.WZSL)
	g.verify = limit(oncs&ONCSVerify != 0, l.VSL)
	g.deallocate = oncs&ONCSDatasetManagement != 0 || l.DMRL != 0 || l.DMRSL != 0 || l.DMSL != 0
	g.dsmRanges, g.dsmRange, g.dsmTotal = MaxDSMRanges, math.MaxUint32, math.MaxUint64
	if l.DMRL != 0 {
		g.dsmRanges = min(g.dsmRanges, int(l.DMRL))
	}
	if l.DMRSL != 0 {
		g.dsmRange = uint64(l.DMRSL)
	}
	if l.DMSL != 0 {
		g.dsmTotal = l.DMSL
	}
}

var errNoBlocks = fmt.Errorf("%w: no blocks", ErrLength)

func (g *geometry) outOfRange(io *IO) error {
	return fmt.Errorf("%w: LBA %d, %d blocks, namespace of %d", ErrOutOfRange, io.LBA, io.Blocks, g.blocks)
}

func (g *geometry) wrongLength(have, blocks uint64) error {
	return fmt.Errorf("%w: %d bytes for %d blocks of %d", ErrLength, have, blocks, g.xfer)
}

func badOp(op Opcode) error {
	return fmt.Errorf("%w: opcode %#x in IO", ErrUnsupported, uint8(op))
}

func unsupported(name string) error { return fmt.Errorf("%w: %s", ErrUnsupported, name) }

func takesNoData(name string) error { return fmt.Errorf("%w: %s takes no data", ErrLength, name) }
