//qpoll:hot

package nvme

// crosses tells whether blocks at lba reach across a multiple of the boundary,
// which is not 0.
func (g *geometry) crosses(lba uint64, blocks uint32) bool {
	if b := uint64(g.boundary); b&(b-1) != 0 {
		return lba%b+uint64(blocks) > b
	} else {
		return lba&(b-1)+uint64(blocks) > b
	}
}

// check validates an I/O before anything reaches the wire.
func (g *geometry) check(io *IO) (Data, opLimits, error) {
	lim := opLimits{boundary: uint64(g.boundary)}
	if g.gone {
		return Data{}, lim, ErrNoNamespace
	}
	if io.Blocks == 0 {
		return Data{}, lim, errNoBlocks
	}
	if io.LBA >= g.blocks || io.Blocks > g.blocks-io.LBA {
		return Data{}, lim, g.outOfRange(io)
	}
	d := Data{Buf: io.Buf, Vec: io.Vec}
	switch io.Op {
	case OpRead:
		d.Dir = DirIn
	case OpWrite:
		d.Dir = DirOut
	case OpCompare:
		if !g.compare {
			return d, lim, unsupported("Compare")
		}
		d.Dir = DirOut
	case OpWriteZeroes:
		return g.checkNoData(io, g.zeroes, "Write Zeroes")
	case OpVerify:
		return g.checkNoData(io, g.verify, "Verify")
	default:
		return d, lim, badOp(io.Op)
	}
	if have, need := d.room(), io.Blocks*uint64(g.xfer); have != need || io.Buf != nil && io.Vec != nil {
		return d, lim, g.wrongLength(have, io.Blocks)
	}
	d.Len = uint32(io.Blocks * uint64(g.xfer)) // of one piece; cut sets it when splitting
	lim.max, lim.xfer = uint64(g.oneCommand), g.xfer
	return d, lim, nil
}

func (g *geometry) checkNoData(io *IO, limit uint64, name string) (Data, opLimits, error) {
	lim := opLimits{max: limit}
	switch {
	case limit == 0:
		return Data{}, lim, unsupported(name)
	case io.Buf != nil || io.Vec != nil:
		return Data{}, lim, takesNoData(name)
	}
	return Data{}, lim, nil
}
