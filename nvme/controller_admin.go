package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// adminReserve is the number of admin trackers kept for the library: events,
// aborts, keep-alive, and initialisation.
const adminReserve = maxAsyncRequests + maxAborts + 2

// call is one blocking command. Its data is bounced through memory of its own,
// so that a caller who gives up may reuse his.
type call struct {
	q    *QueuePair
	ns   *Namespace
	cmd  Command
	data Data
	cpl  Completion
	err  error // why it was not submitted
	lost error // why the queue was lost, if that ended the command
	done chan struct{}
}

func newCall(q *QueuePair, cmd *Command, buf []byte) (*call, error) {
	dir := cmd.Opcode.Direction()
	if cmd.Opcode == OpFabrics {
		dir = Direction(cmd.NSID & 3) // the fabrics command type
	}
	k := &call{q: q, cmd: *cmd, done: make(chan struct{})}
	if len(buf) == 0 {
		return k, nil
	}
	switch {
	case dir == DirNone:
		return nil, fmt.Errorf("%w: %d bytes for opcode %#x, which says that it moves none", ErrLength, len(buf), uint8(cmd.Opcode))
	case dir == DirBoth:
		return nil, fmt.Errorf("%w: opcode %#x moves data both ways", ErrUnsupported, uint8(cmd.Opcode))
	case uint64(len(buf)) > math.MaxUint32:
		return nil, fmt.Errorf("%w: %d bytes", ErrLength, len(buf))
	}
	k.data = Data{Buf: make([]byte, len(buf)), Len: uint32(len(buf)), Dir: dir}
	if dir == DirOut {
		copy(k.data.Buf, buf)
	}
	return k, nil
}

// submit implements waiter.
func (k *call) submit() (full bool) {
	err := k.q.submitRaw(&k.cmd, k.data, k.ns, callDone, k)
	if errors.Is(err, ErrQueueFull) {
		return true
	}
	if err != nil {
		k.err = err
		close(k.done)
	}
	return false
}

func callDone(arg any, cpl *Completion) {
	k := arg.(*call)
	k.cpl = *cpl
	if cpl.Status().IsPath() {
		k.lost = k.q.cold.err
	}
	close(k.done)
}

// wait returns the completion, with its status as an error.
func (k *call) wait(ctx context.Context, buf []byte) (Completion, error) {
	select {
	case <-k.done:
	case <-ctx.Done():
		return Completion{}, ctxError(ctx)
	}
	if k.err != nil {
		return Completion{}, k.err
	}
	if k.data.Dir == DirIn {
		copy(buf, k.data.Buf)
	}
	err := k.cpl.Status().Err()
	if err != nil && k.lost != nil {
		err = fmt.Errorf("%w: %w", err, k.lost)
	}
	return k.cpl, err
}

func ctxError(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// DoInternal posts a command as PostInternal does, on a queue that is connected,
// and waits for it. For transports; any goroutine but the poller's.
func (q *QueuePair) DoInternal(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	if q.p.OnCore() {
		return Completion{}, ErrOnCore
	}
	k, err := newCall(q, cmd, buf)
	if err != nil {
		return Completion{}, err
	}
	err = post(ctx, q.p, func() {
		if k.err = q.postOwn(&k.cmd, k.data, 0, callDone, k); k.err != nil {
			close(k.done)
		}
	})
	if err != nil {
		return Completion{}, err
	}
	return k.wait(ctx, buf)
}

// Admin sends one admin command and waits for its completion: raw passthrough.
// cmd.CID, the data pointer and the PSDT bits are set by the library; buf is
// read or written as the opcode's low bits say. A status other than success
// comes back as an error of type Status beside the completion. While the
// controller reconnects, the command waits. If ctx ends first, a command that
// was not sent will not be; else its fate is unknown. buf may be reused at once.
func (c *Controller) Admin(ctx context.Context, cmd *Command, buf []byte) (Completion, error) {
	return c.passthrough(ctx, c.admin, nil, cmd, buf)
}

func (c *Controller) passthrough(ctx context.Context, q *QueuePair, ns *Namespace, cmd *Command, buf []byte) (Completion, error) {
	if c.onCore() {
		return Completion{}, ErrOnCore
	}
	if err := c.checkTransfer(uint64(len(buf))); err != nil {
		return Completion{}, err
	}
	if err := c.waitLive(ctx); err != nil {
		return Completion{}, err
	}
	k, err := newCall(q, cmd, buf)
	if err != nil {
		return Completion{}, err
	}
	k.ns = ns
	if err := post(ctx, q.p, func() { q.enter(k) }); err != nil {
		return Completion{}, err
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		postLater(q.p, func() { q.giveUp(k) })
	}
	return k.wait(ctx, buf)
}

// checkTransfer refuses a transfer that no single command may carry.
func (c *Controller) checkTransfer(n uint64) error {
	if m := c.MaxTransfer(); m != 0 && n > uint64(m) {
		return fmt.Errorf("%w: %d bytes, one command moves at most %d", ErrLength, n, m)
	}
	return nil
}

// MaxTransfer returns the most bytes that one command may move, from MDTS and
// the transport's limit; 0 means no limit.
func (c *Controller) MaxTransfer() uint32 {
	c.mu.Lock()
	m := c.limits.MaxTransfer
	page := c.cap.MinPageSize()
	c.mu.Unlock()
	if id := c.id.Load(); id != nil {
		if limit := id.MaxTransferSize(page); limit != 0 && limit < 1<<32 && (m == 0 || uint32(limit) < m) {
			m = uint32(limit)
		}
	}
	return m
}

// GetFeature reads a feature's value: the result dword, and buf where the
// feature has a data structure. sel is 0 for the current value, 1 default, 2
// saved, 3 capabilities.
func (c *Controller) GetFeature(ctx context.Context, fid FeatureID, sel uint8, nsid, cdw11 uint32, buf []byte) (uint32, error) {
	cmd := Command{Opcode: AdminGetFeatures, NSID: nsid, CDW10: uint32(fid) | uint32(sel&7)<<8, CDW11: cdw11}
	cpl, err := c.Admin(ctx, &cmd, buf)
	return uint32(cpl.Result), c.opError(fmt.Sprintf("get feature %#x", uint8(fid)), 0, err)
}

// SetFeature writes a feature's value and returns the result dword. save asks
// the controller to keep it across resets.
func (c *Controller) SetFeature(ctx context.Context, fid FeatureID, save bool, nsid, cdw11 uint32, buf []byte) (uint32, error) {
	cmd := Command{Opcode: AdminSetFeatures, NSID: nsid, CDW10: uint32(fid), CDW11: cdw11}
	if save {
		cmd.CDW10 |= 1 << 31
	}
	cpl, err := c.Admin(ctx, &cmd, buf)
	return uint32(cpl.Result), c.opError(fmt.Sprintf("set feature %#x", uint8(fid)), 0, err)
}

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
		_, err := c.Admin(ctx, cmd, b)
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

// Abort asks the controller to abort a command of queue sqid. It returns
// whether the controller says that it did (bit 0 of the result clear); an
// aborted command completes with StatusAbortRequested.
func (c *Controller) Abort(ctx context.Context, sqid, cid uint16) (bool, error) {
	cmd := AbortCommand{SQID: sqid, CID: cid}.Command()
	cpl, err := c.Admin(ctx, &cmd, nil)
	if err != nil {
		return false, c.opError("abort", 0, err)
	}
	return uint32(cpl.Result)&AbortNotPerformed == 0, nil
}

// Property reads a controller property (register) of size 4 or 8 bytes. Over
// fabrics that takes a connection, and it fails with ErrNotLive without one.
func (c *Controller) Property(ctx context.Context, offset uint32, size int) (v uint64, err error) {
	err = c.withProperty(ctx, func() error {
		v, err = c.t.Property(ctx, offset, size)
		return err
	})
	return v, c.opError(fmt.Sprintf("read property %#x", offset), 0, err)
}

// SetProperty writes a controller property (register); see Property.
func (c *Controller) SetProperty(ctx context.Context, offset uint32, size int, v uint64) error {
	err := c.withProperty(ctx, func() error { return c.t.SetProperty(ctx, offset, size, v) })
	return c.opError(fmt.Sprintf("write property %#x", offset), 0, err)
}

// withProperty calls f while the transport can be used, one caller at a time.
func (c *Controller) withProperty(ctx context.Context, f func() error) error {
	if c.onCore() {
		return ErrOnCore
	}
	if err := c.use(); err != nil {
		return err
	}
	defer c.users.Done()
	select {
	case c.property <- struct{}{}:
	case <-ctx.Done():
		return ctxError(ctx)
	}
	defer func() { <-c.property }()
	return f()
}

// ActiveNamespaces returns the identifiers of the active namespaces, in order
// (CNS 02h).
func (c *Controller) ActiveNamespaces(ctx context.Context) ([]uint32, error) {
	list, err := c.activeNamespaces(ctx, c.Admin)
	return list, c.opError("identify active namespaces", 0, err)
}

type adminFunc func(ctx context.Context, cmd *Command, buf []byte) (Completion, error)

// maxNamespaces bounds what a hostile controller can make the host list.
const maxNamespaces = 1 << 20

func (c *Controller) activeNamespaces(ctx context.Context, do adminFunc) ([]uint32, error) {
	if !c.asksFor(CNSActiveNamespaces) {
		return c.tryNamespaces(ctx, do)
	}
	var all []uint32
	buf := make([]byte, IdentifyDataSize)
	for last := uint32(0); ; {
		cmd := Command{Opcode: AdminIdentify, NSID: last, CDW10: uint32(CNSActiveNamespaces)}
		if _, err := do(ctx, &cmd, buf); err != nil {
			if last == 0 && rejected(err) {
				return c.tryNamespaces(ctx, do)
			}
			return nil, err
		}
		for i := 0; i < len(buf); i += 4 {
			n := binary.LittleEndian.Uint32(buf[i:])
			switch {
			case n == 0:
				return all, nil
			case n <= last || n > 0xfffffffe:
				return nil, fmt.Errorf("%w: active namespace list not ascending (%#x after %#x)", ErrProtocol, n, last)
			case len(all) == maxNamespaces:
				return nil, fmt.Errorf("%w: more than %d active namespaces", ErrProtocol, maxNamespaces)
			}
			all, last = append(all, n), n
		}
		if last == 0xfffffffe {
			return all, nil
		}
	}
}

// tryNamespaces is activeNamespaces for controllers without a list.
func (c *Controller) tryNamespaces(ctx context.Context, do adminFunc) ([]uint32, error) {
	var all []uint32
	buf := make([]byte, IdentifyDataSize)
	for n := uint32(1); n <= min(c.id.Load().NN, maxNamespaces); n++ {
		cmd := Command{Opcode: AdminIdentify, NSID: n, CDW10: uint32(CNSNamespace)}
		_, err := do(ctx, &cmd, buf)
		switch {
		case errors.Is(err, StatusInvalidNamespace):
		case err != nil:
			return nil, err
		case binary.LittleEndian.Uint64(buf) != 0: // NSZE
			all = append(all, n)
		}
	}
	return all, nil
}
