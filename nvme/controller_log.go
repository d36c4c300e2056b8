package nvme

import (
	"context"
	"encoding/binary"
	"fmt"
)

// LogOptions are the less common fields of Get Log Page.
type LogOptions struct {
	NSID   uint32 // NSIDAll or 0 for pages that are not of a namespace
	Offset uint64 // byte offset, multiple of 4
	LSP    uint8  // log specific parameter, 7 bits
	LSI    uint16 // log specific identifier
	RAE    bool   // retain asynchronous event
	UUID   uint8  // UUID index
	CSI    uint8  // command set identifier
}

// LogPage fills buf from a log page, in pieces no larger than one command may
// move. len(buf) must be a multiple of 4. More than one piece needs a controller that
// supports offsets (LPA bit 2).
func (c *Controller) LogPage(ctx context.Context, lid LogID, buf []byte, o LogOptions) error {
	err := c.logPage(ctx, lid, buf, o, func(ctx context.Context, cmd *Command, b []byte) error {
		_, err := c.adminCommand(ctx, cmd, b)
		return err
	})
	return c.opError(fmt.Sprintf("get log page %#x", uint8(lid)), 0, err)
}

func (c *Controller) logPage(ctx context.Context, lid LogID, buf []byte, o LogOptions, do func(context.Context, *Command, []byte) error) error {
	if len(buf) == 0 || len(buf)%4 != 0 || o.Offset%4 != 0 {
		return fmt.Errorf("%w: log pages are read in multiples of 4 bytes", ErrLength)
	}
	chunk := int(c.chunk())
	if (len(buf) > chunk || o.Offset != 0) && c.id.Load().LPA&LPAExtendedData == 0 {
		return fmt.Errorf("%w: reading a log page at an offset", ErrUnsupported)
	}
	retain := o.RAE
	for off := 0; off < len(buf); off += chunk {
		b := buf[off:min(off+chunk, len(buf))]
		// Until the last piece, reading must not clear the event.
		cmd := GetLogPage(lid, o.NSID, len(b), o.Offset+uint64(off))
		cmd.CDW10 |= uint32(o.LSP&0x7f) << 8
		if retain || off+chunk < len(buf) {
			cmd.CDW10 |= 1 << 15
		}
		cmd.CDW11 |= uint32(o.LSI) << 16
		cmd.CDW14 = uint32(o.UUID&0x7f) | uint32(o.CSI)<<24
		if err := do(ctx, &cmd, b); err != nil {
			return err
		}
	}
	return nil
}

// ReadANALog reads and parses the Asymmetric Namespace Access log page whole,
// in pieces as large as one command may move, and again if it changed between
// the pieces.
func (c *Controller) ReadANALog(ctx context.Context) (*ANALog, error) {
	log, err := c.readANALog(ctx)
	return log, c.opError("read ANA log", 0, err)
}

// maxANALog bounds what a hostile controller can make the host read.
const maxANALog = 16 << 20

func (c *Controller) readANALog(ctx context.Context) (*ANALog, error) {
	id := c.id.Load()
	if !id.ReportsANA() {
		return nil, fmt.Errorf("%w: asymmetric namespace access", ErrUnsupported)
	}
	size := min(ANALogSize(id.NANAGRPID, id.MaxNamespaces()), maxANALog)
	for range 8 {
		buf := make([]byte, size)
		if err := c.LogPage(ctx, LogANA, buf, LogOptions{}); err != nil {
			return nil, err
		}
		if size > uint64(c.chunk()) {
			var head [anaHeaderSize]byte
			if err := c.LogPage(ctx, LogANA, head[:], LogOptions{}); err != nil {
				return nil, err
			}
			if binary.LittleEndian.Uint64(head[:]) != binary.LittleEndian.Uint64(buf) {
				continue // the pieces may be of several states
			}
		}
		log := new(ANALog)
		if err := log.UnmarshalBinary(buf); err != nil {
			return nil, err
		}
		return log, nil
	}
	return nil, fmt.Errorf("%w: the ANA log changes faster than it can be read", ErrProtocol)
}

// chunk returns how many bytes of a log page are read at once.
func (c *Controller) chunk() uint32 {
	if m := c.MaxTransfer(); m != 0 {
		return min(m&^3, 1<<20)
	}
	return 1 << 20
}
