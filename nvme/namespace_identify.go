package nvme

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// rejected tells whether err is the controller's answer that it does not have
// what was asked for, as opposed to one that another time may differ.
func rejected(err error) bool {
	var st Status
	if !errors.As(err, &st) || st.IsPath() {
		return false
	}
	c := st.Code()
	return st.DNR() || c == StatusInvalidField || c == StatusInvalidOpcode
}

// asksFor tells whether the controller knows a value of CNS: version 1.0 looks
// at one bit, 1.1 at two, and answers something else.
func (c *Controller) asksFor(cns CNS) bool {
	vs := c.Version()
	return vs >= MakeVS(1, 2, 0) || cns <= 3 && vs >= MakeVS(1, 1, 0) || cns <= 1
}

// identifyNamespace reads CNS 00h and, where there are any, the descriptors of
// CNS 03h and the limits of the command set.
func (c *Controller) identifyNamespace(ctx context.Context, nsid uint32, do adminFunc) (*Namespace, error) {
	if nsid == 0 || nsid > 0xfffffffe {
		return nil, fmt.Errorf("%w: NSID %#x is not valid", ErrNoNamespace, nsid)
	}
	buf := make([]byte, IdentifyDataSize)
	cmd := Command{Opcode: AdminIdentify, NSID: nsid, CDW10: uint32(CNSNamespace)}
	if _, err := do(ctx, &cmd, buf); err != nil {
		if errors.Is(err, StatusInvalidNamespace) {
			return nil, fmt.Errorf("%w: %w", ErrNoNamespace, err)
		}
		return nil, err
	}
	info := new(IdentifyNamespace)
	if err := info.UnmarshalBinary(buf); err != nil {
		return nil, violation(nsid, err)
	}
	if !info.Active() {
		return nil, fmt.Errorf("%w: namespace %d is not active", ErrNoNamespace, nsid)
	}
	ns := &Namespace{c: c, id: nsid}
	ns.ident = NamespaceIdentity{EUI64: info.EUI64, NGUID: info.NGUID}
	if err := c.describeNamespace(ctx, ns, do); err != nil {
		return nil, err
	}
	g, err := c.geometry(ctx, ns, info, do)
	if err != nil {
		return nil, err
	}
	ns.info.Store(info)
	ns.geo.Store(g)
	return ns, nil
}

// violation says that what the controller tells about a namespace cannot be.
func violation(nsid uint32, err error) error {
	return fmt.Errorf("%w: namespace %d: %w", ErrProtocol, nsid, err)
}

// describeNamespace reads the identification descriptor list. Controllers
// before 1.3 have none unless they offer several command sets, and some reject
// it: then CNS 00h is all there is.
func (c *Controller) describeNamespace(ctx context.Context, ns *Namespace, do adminFunc) error {
	if c.Version() < MakeVS(1, 3, 0) && bestCSS(c.Capabilities()) != cssAll {
		return nil
	}
	buf := make([]byte, IdentifyDataSize)
	cmd := Command{Opcode: AdminIdentify, NSID: ns.id, CDW10: uint32(CNSNamespaceDescriptors)}
	if _, err := do(ctx, &cmd, buf); err != nil {
		if rejected(err) {
			return nil
		}
		return err
	}
	d, err := ParseNamespaceDescriptors(buf)
	if err != nil {
		return violation(ns.id, err)
	}
	if d.EUI64 == [8]byte{} {
		d.EUI64 = ns.ident.EUI64
	}
	if d.NGUID == [16]byte{} {
		d.NGUID = ns.ident.NGUID
	}
	ns.ident = d
	return nil
}

// recheckNamespaces makes sure, after a reconnect and before any I/O goes out,
// that the namespaces in use are still the same.
func (c *Controller) recheckNamespaces(ctx context.Context) error {
	return c.recheck(ctx, nil, c.admin.DoInternal)
}

// refreshNamespaces is recheckNamespaces for some (nil: all) on a live
// controller.
func (c *Controller) refreshNamespaces(ctx context.Context, list []uint32) error {
	return c.recheck(ctx, list, c.adminCommand)
}

func (c *Controller) recheck(ctx context.Context, list []uint32, do adminFunc) error {
	c.mu.Lock()
	c.checks++
	var known []*Namespace
	for _, ns := range c.ns {
		if !ns.gone.Load() && (list == nil || slices.Contains(list, ns.id)) {
			known = append(known, ns)
		}
	}
	c.mu.Unlock()
	for _, ns := range known {
		if err := c.recheckOne(ctx, ns, do); err != nil {
			return c.opError(fmt.Sprintf("identify namespace %d", ns.id), 0, err)
		}
	}
	return nil
}

// recheckOne brings a namespace up to date. An error means that this could not
// be done now; a namespace that is no longer usable leaves.
func (c *Controller) recheckOne(ctx context.Context, ns *Namespace, do adminFunc) error {
	for {
		epoch := c.association()
		now, err := c.identifyNamespace(ctx, ns.id, do)
		why, passing := ns.compare(now, err)
		if passing != nil {
			return passing
		}
		c.mu.Lock()
		valid := c.epoch == epoch
		switch {
		case !valid: // from an association of before
		case why != "":
			ns.leave()
		default:
			ns.info.Store(now.info.Load())
			ns.geo.Store(now.geo.Load())
		}
		c.mu.Unlock()
		if why != "" && valid {
			c.cfg.Logger.Warn("namespace lost", "controller", c.t.Address(), "nsid", ns.id, "cause", why)
		}
		if valid {
			return nil
		}
	}
}

// compare judges what identifying ns again has brought: why it is not the
// namespace that it was, or an error that says nothing about that.
func (ns *Namespace) compare(now *Namespace, err error) (why string, passing error) {
	switch {
	case errors.Is(err, ErrNoNamespace):
		return "gone", nil
	case rejected(err), errors.Is(err, ErrProtocol), errors.Is(err, ErrUnsupported):
		return "not usable any more: " + err.Error(), nil
	case err != nil:
		return "", err
	case !ns.sameAs(now):
		return "replaced by another", nil
	case !ns.formattedAs(now):
		return "formatted anew", nil
	}
	return "", nil
}
