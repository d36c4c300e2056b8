package nvme

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// geometry is what submission needs to know about a namespace. It never
// changes; a changed namespace gets a new one.
type geometry struct {
	xfer       uint32 // bytes per block that move
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

// maxNLB is the most blocks that the 16-bit field NLB can ask for.
const maxNLB = 1 << 16

// geometry works out the limits of a namespace from Identify data (NVM Command
// Set Specification 4.1.5) and the transport.
func (c *Controller) geometry(ctx context.Context, ns *Namespace, info *IdentifyNamespace, do adminFunc) (*geometry, error) {
	f, err := info.Format()
	if err != nil {
		return nil, err
	}
	g := &geometry{xfer: 1 << f.LBADS, nsid: ns.id, blocks: info.NSZE}
	if info.ExtendedMetadata() {
		g.xfer += uint32(f.MS)
	} else if f.MS != 0 && c.fabrics() {
		return nil, fmt.Errorf("%w: namespace %d: separate metadata over fabrics", ErrProtocol, ns.id)
	}
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
	g.boundary = uint32(info.NOIOB)
	id := c.id.Load()
	g.compare = id.ONCS&ONCSCompare != 0
	g.deallocate = id.ONCS&ONCSDatasetManagement != 0
	if id.ONCS&ONCSWriteZeroes != 0 {
		g.zeroes = maxNLB
	}
	if id.ONCS&ONCSVerify != 0 {
		g.verify = maxNLB
	}
	g.dsmRanges, g.dsmRange, g.dsmTotal = MaxDSMRanges, math.MaxUint32, math.MaxUint64
	return g, c.commandSetLimits(ctx, g, do)
}

// commandSetLimits applies CNS 06h for the NVM command set, which controllers
// before 2.0 do not have.
func (c *Controller) commandSetLimits(ctx context.Context, g *geometry, do adminFunc) error {
	buf := make([]byte, IdentifyDataSize)
	cmd := Command{Opcode: AdminIdentify, CDW10: uint32(CNSControllerCS)}
	_, err := do(ctx, &cmd, buf)
	var st Status
	if errors.As(err, &st) && !st.IsPath() {
		// Write Zeroes without a limit of its own is bounded as transfers are:
		// controllers that turn it into writes do so in their buffers.
		g.zeroes = min(g.zeroes, uint64(g.oneCommand))
		return nil
	}
	if err != nil {
		return err
	}
	var l IdentifyControllerNVM
	if err := l.UnmarshalBinary(buf); err != nil {
		return err
	}
	shift := 12 + uint(c.Capabilities().MPSMIN())
	limit := func(exp uint8) uint64 {
		if exp == 0 || uint(exp)+shift > 48 {
			return maxNLB
		}
		return max(1, 1<<(uint(exp)+shift)/uint64(g.xfer))
	}
	g.zeroes = min(g.zeroes, limit(l.WZSL))
	g.verify = min(g.verify, limit(l.VSL))
	if l.DMRL != 0 {
		g.dsmRanges = min(g.dsmRanges, int(l.DMRL))
	}
	if l.DMRSL != 0 {
		g.dsmRange = uint64(l.DMRSL)
	}
	if l.DMSL != 0 {
		g.dsmTotal = l.DMSL
	}
	return nil
}

// check validates an I/O before anything reaches the wire.
func (g *geometry) check(io *IO) (Data, opLimits, error) {
	lim := opLimits{boundary: uint64(g.boundary)}
	if g.gone {
		return Data{}, lim, ErrNoNamespace
	}
	if io.Blocks == 0 {
		return Data{}, lim, fmt.Errorf("%w: no blocks", ErrLength)
	}
	if io.LBA >= g.blocks || io.Blocks > g.blocks-io.LBA {
		return Data{}, lim, fmt.Errorf("%w: LBA %d, %d blocks, namespace of %d", ErrOutOfRange, io.LBA, io.Blocks, g.blocks)
	}
	d := Data{Buf: io.Buf, Vec: io.Vec}
	switch io.Op {
	case OpRead:
		d.Dir = DirIn
	case OpWrite:
		d.Dir = DirOut
	case OpCompare:
		if !g.compare {
			return d, lim, fmt.Errorf("%w: Compare", ErrUnsupported)
		}
		d.Dir = DirOut
	case OpWriteZeroes:
		return g.checkNoData(io, g.zeroes, "Write Zeroes")
	case OpVerify:
		return g.checkNoData(io, g.verify, "Verify")
	default:
		return d, lim, fmt.Errorf("%w: opcode %#x in IO", ErrUnsupported, uint8(io.Op))
	}
	if have, need := d.room(), io.Blocks*uint64(g.xfer); have != need || io.Buf != nil && io.Vec != nil {
		return d, lim, fmt.Errorf("%w: %d bytes for %d blocks of %d", ErrLength, have, io.Blocks, g.xfer)
	}
	d.Len = uint32(io.Blocks * uint64(g.xfer)) // of one piece; cut sets it when splitting
	lim.max, lim.xfer = uint64(g.oneCommand), g.xfer
	return d, lim, nil
}

func (g *geometry) checkNoData(io *IO, limit uint64, name string) (Data, opLimits, error) {
	lim := opLimits{max: limit}
	switch {
	case limit == 0:
		return Data{}, lim, fmt.Errorf("%w: %s", ErrUnsupported, name)
	case io.Buf != nil || io.Vec != nil:
		return Data{}, lim, fmt.Errorf("%w: %s takes no data", ErrLength, name)
	}
	return Data{}, lim, nil
}
