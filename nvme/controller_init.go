package nvme

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// hostPageShift is the host's memory page size that CC.MPS announces: 4 KiB.
const hostPageShift = 12

// initialise enables the controller and reads what the host must know. The
// admin queue is connected and not live, so only commands from here pass.
func (c *Controller) initialise(ctx context.Context) error {
	if err := c.enable(ctx); err != nil {
		return c.opError("enable", 0, err)
	}
	id, err := c.identifyController(ctx)
	if err != nil {
		return c.opError("identify controller", 0, err)
	}
	if old := c.id.Load(); old != nil && old.SUBNQN != id.SUBNQN {
		return c.opError("identify controller", 0, fmt.Errorf("%w: subsystem %q became %q", ErrProtocol, ascii(old.SUBNQN[:]), ascii(id.SUBNQN[:])))
	}
	limits := c.t.Limits(id)
	if limits.Fabrics && limits.ControllerID != ControllerIDDynamic && limits.ControllerID != id.CNTLID {
		return c.opError("identify controller", 0, fmt.Errorf("%w: controller identifier %#x, Connect said %#x", ErrProtocol, id.CNTLID, limits.ControllerID))
	}
	c.id.Store(id)
	c.mu.Lock()
	c.limits = limits
	c.mu.Unlock()
	c.readKeepAlive(ctx, id)
	if err := c.configureEvents(ctx, id); err != nil {
		return err
	}
	if id.CNTRLTYPE == ControllerTypeDiscovery || id.CNTRLTYPE == ControllerTypeAdministrative {
		return nil
	}
	return c.negotiateQueues(ctx)
}

// enable follows Base Specification 3.5.1 (memory based) and 3.5.2 (message
// based): disable if need be, configure, enable, wait.
func (c *Controller) enable(ctx context.Context) error {
	v, err := c.t.Property(ctx, RegCAP, 8)
	if err != nil {
		return fmt.Errorf("read CAP: %w", err)
	}
	capp := CAP(v)
	if min := 12 + int(capp.MPSMIN()); min > hostPageShift {
		return fmt.Errorf("%w: smallest memory page is %d bytes (CAP.MPSMIN), this host uses %d", ErrUnsupported, 1<<min, 1<<hostPageShift)
	}
	if capp.MQES() < 1 {
		return fmt.Errorf("%w: CAP.MQES %d, 1 is the least", ErrProtocol, capp.MQES())
	}
	v, err = c.t.Property(ctx, RegVS, 4)
	if err != nil {
		return fmt.Errorf("read VS: %w", err)
	}
	c.mu.Lock()
	c.cap, c.vs = capp, VS(v)
	c.mu.Unlock()
	limit := c.readyTimeout(ctx, capp)
	if err := c.quietDown(ctx, limit); err != nil {
		return err
	}
	want := CCFields{EN: true, IOSQES: 6, IOCQES: 4, CSS: bestCSS(capp), AMS: bestAMS(capp, c.t.Limits(nil).Arbitration)}.CC()
	if err := c.t.SetProperty(ctx, RegCC, 4, uint64(want)); err != nil {
		return fmt.Errorf("write CC: %w", err)
	}
	return c.waitReady(ctx, limit, true)
}

// readyTimeout returns how long the controller may take to get ready: CAP.TO,
// or CRTO where that is longer, and a grace of half a second, which also serves
// controllers that report 0.
func (c *Controller) readyTimeout(ctx context.Context, capp CAP) time.Duration {
	limit := capp.TO()
	if capp.CRWMS() {
		if v, err := c.t.Property(ctx, RegCRTO, 4); err == nil {
			limit = max(limit, CRTO(v).CRWMT())
		}
	}
	return limit + 500*time.Millisecond
}

// quietDown makes sure that the controller is disabled. CC.EN must not change
// while CSTS.RDY has yet to follow it.
func (c *Controller) quietDown(ctx context.Context, limit time.Duration) error {
	cc, err := c.t.Property(ctx, RegCC, 4)
	if err != nil {
		return fmt.Errorf("read CC: %w", err)
	}
	st, err := c.status(ctx)
	if err != nil {
		return err
	}
	if CC(cc).EN() {
		if !st.RDY() && !st.CFS() {
			// If it does not get ready, disabling it is all that is left.
			if err := c.waitReady(ctx, limit, true); err != nil && ctx.Err() != nil {
				return err
			}
		}
		if err := c.t.SetProperty(ctx, RegCC, 4, uint64(CC(cc).WithEN(false))); err != nil {
			return fmt.Errorf("disable: %w", err)
		}
	} else if !st.RDY() {
		return nil
	}
	return c.waitReady(ctx, limit, false)
}

// status reads CSTS.
func (c *Controller) status(ctx context.Context) (CSTS, error) {
	v, err := c.t.Property(ctx, RegCSTS, 4)
	if err != nil {
		return 0, fmt.Errorf("read CSTS: %w", err)
	}
	if v == 0xffffffff {
		return 0, fmt.Errorf("%w: CSTS reads all ones, the controller is gone", ErrFatal)
	}
	return CSTS(v), nil
}

// waitReady polls CSTS until RDY is as wanted, for at most limit. A controller
// may be slower to get ready than ConnectTimeout, and say so.
func (c *Controller) waitReady(ctx context.Context, limit time.Duration, ready bool) error {
	if c.patience != nil {
		c.patience.Reset(c.cfg.ConnectTimeout + limit)
		defer c.patience.Reset(c.cfg.ConnectTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: CSTS.RDY did not become %v within %v", ErrTimeout, ready, limit))
	defer cancel()
	for delay := 100 * time.Microsecond; ; delay = min(2*delay, 20*time.Millisecond) {
		st, err := c.status(ctx)
		switch {
		case err != nil:
			return err
		case st.CFS() && ready:
			return fmt.Errorf("%w: CSTS.CFS set while waiting for RDY", ErrFatal)
		case st.RDY() == ready:
			return nil
		}
		if err := sleep(ctx, delay); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctxError(ctx)
	}
}

// identifyController reads CNS 01h.
func (c *Controller) identifyController(ctx context.Context) (*IdentifyController, error) {
	buf := make([]byte, IdentifyDataSize)
	cmd := Command{Opcode: AdminIdentify, CDW10: uint32(CNSController)}
	if _, err := c.admin.DoInternal(ctx, &cmd, buf); err != nil {
		return nil, err
	}
	id := new(IdentifyController)
	if err := id.UnmarshalBinary(buf); err != nil {
		return nil, err
	}
	return id, nil
}

// negotiateQueues asks for I/O queues. A controller that rejects the feature
// still has at least one.
func (c *Controller) negotiateQueues(ctx context.Context) error {
	n := uint32(c.cfg.IOQueues - 1)
	cmd := Command{Opcode: AdminSetFeatures, CDW10: uint32(FeatNumberOfQueues), CDW11: n<<16 | n}
	cpl, err := c.admin.DoInternal(ctx, &cmd, nil)
	granted := c.cfg.IOQueues
	var st Status
	switch {
	case err == nil:
		sq, cq := uint32(cpl.Result)&0xffff, uint32(cpl.Result)>>16&0xffff
		granted = min(granted, int(min(sq, cq))+1)
	case errors.As(err, &st) && !st.IsPath():
		c.cfg.Logger.Warn("Set Features (Number of Queues) rejected", "controller", c.t.Address(), "status", st.Error())
		granted = 1
	default:
		return c.opError("set number of queues", 0, err)
	}
	c.mu.Lock()
	c.nq = granted
	c.mu.Unlock()
	return nil
}

// disable clears CC.EN where the controller can still be reached, so that the
// old association is known quiet before the next. It reports whether it is.
func (c *Controller) disable() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	cc, err := c.t.Property(ctx, RegCC, 4)
	if err != nil {
		return false
	}
	if CC(cc).EN() {
		if c.t.SetProperty(ctx, RegCC, 4, uint64(CC(cc).WithEN(false))) != nil {
			return false
		}
	}
	return c.waitReady(ctx, 2*time.Second, false) == nil
}

// notifyShutdown performs a normal shutdown (Base Specification 3.6), within
// RTD3E or five seconds, or until whoever closes the controller is in haste. It
// reports whether the controller has said that it is complete.
func (c *Controller) notifyShutdown() bool {
	limit := 5 * time.Second
	if d := c.id.Load().ShutdownTime(); d != 0 {
		limit = min(d, 30*time.Second)
	}
	ctx, cancel := context.WithTimeout(c.polite, limit)
	defer cancel()
	cc, err := c.t.Property(ctx, RegCC, 4)
	if err != nil {
		return false
	}
	if c.t.SetProperty(ctx, RegCC, 4, uint64(CC(cc).WithSHN(CCSHNNormal))) != nil {
		return false
	}
	for {
		st, err := c.status(ctx)
		if err != nil || st.SHST() == CSTSSHSTComplete || st.CFS() {
			return err == nil && st.SHST() == CSTSSHSTComplete
		}
		if sleep(ctx, 5*time.Millisecond) != nil {
			return false
		}
	}
}

// Values of CC.CSS.
const (
	cssNVM   uint8 = 0
	cssAll   uint8 = 6 // all command sets that the controller supports
	cssAdmin uint8 = 7 // admin commands alone
)

// bestCSS chooses CC.CSS: all supported command sets where the controller knows
// to tell them apart, else the NVM command set, else admin commands alone.
func bestCSS(c CAP) uint8 {
	switch css := c.CSS(); {
	case css&(1<<6) != 0:
		return cssAll
	case css&1 == 0 && css&(1<<7) != 0:
		return cssAdmin
	}
	return cssNVM
}

// bestAMS chooses CC.AMS: what is asked for where the controller has it, else
// round robin, which all have.
func bestAMS(c CAP, asked uint8) uint8 {
	switch ams := c.AMS(); {
	case asked == CCAMSWeightedRoundRobin && ams&CAPAMSWeightedRoundRobin != 0,
		asked == CCAMSVendor && ams&CAPAMSVendor != 0:
		return asked
	}
	return CCAMSRoundRobin
}
