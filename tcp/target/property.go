package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
	"time"
)

// version is the revision of the Base Specification that controllers follow.
const version = nvme.Version21

// readyTime is what enabling and disabling takes at most, as it is reported.
const readyTime = 500 * time.Millisecond

// capabilities is the CAP property.
func (ctrl *controller) capabilities() nvme.CAP {
	f := nvme.CAPFields{
		MQES:  uint16(ctrl.sub.cfg.QueueEntries - 1),
		CQR:   true,
		TO:    readyTime,
		CSS:   nvme.CAPCSSNVM | nvme.CAPCSSIOCS,
		CRWMS: true,
	}
	if ctrl.sub.discovery {
		f.CSS = nvme.CAPCSSNVM
	}
	return f.CAP()
}

// propertyGet executes a Property Get command.
func (c *conn) propertyGet(r *request) {
	p, err := nvme.ParsePropertyGet(&r.cmd)
	if err != nil || nvme.PropertySize(p.Offset) != p.Size {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	ctrl := c.ctrl
	v := uint64(0)
	switch p.Offset {
	case nvme.RegCAP:
		v = uint64(ctrl.capabilities())
	case nvme.RegVS:
		v = uint64(version)
	case nvme.RegCC:
		v = uint64(ctrl.cc)
	case nvme.RegCSTS:
		v = uint64(ctrl.csts.CSTS())
	case nvme.RegNSSR: // reads as zero
	case nvme.RegCRTO:
		v = uint64(nvme.MakeCRTO(readyTime, 0))
	default:
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	c.status(r, nvme.StatusSuccess, v)
}

// propertySet executes a Property Set command. CC is the only property that
// can be set.
func (c *conn) propertySet(r *request) {
	p, err := nvme.ParsePropertySet(&r.cmd)
	if err != nil || p.Offset != nvme.RegCC || p.Size != 4 {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	c.ctrl.configure(nvme.CC(p.Value))
	c.status(r, nvme.StatusSuccess, 0)
}

// configure takes a new value of CC (Base Specification 3.1.4.5).
func (ctrl *controller) configure(cc nvme.CC) {
	was := ctrl.cc
	ctrl.cc = cc
	switch {
	case cc.EN() && !was.EN():
		ctrl.enable()
	case !cc.EN() && was.EN():
		ctrl.disable()
	}
	if cc.SHN() != nvme.CCSHNNone && was.SHN() == nvme.CCSHNNone {
		ctrl.shutDown(cc.SHN() == nvme.CCSHNNormal)
	}
}

// enable makes the controller ready, or reports a fatal error for what the
// host has configured.
func (ctrl *controller) enable() {
	cc := ctrl.cc
	ok := cc.MPS() == 0 && cc.AMS() == nvme.CCAMSRoundRobin
	if !ctrl.sub.discovery {
		css := cc.CSS() == nvme.CCCSSNVM || cc.CSS() == nvme.CCCSSAll
		ok = ok && css && cc.IOSQES() == 6 && cc.IOCQES() == 4
	}
	ctrl.csts = nvme.CSTSFields{RDY: ok, CFS: !ok}
	ctrl.setReady(ok)
}

// disable resets the controller: its I/O queues are deleted, what is
// outstanding ends, features have their defaults again.
func (ctrl *controller) disable() {
	ctrl.csts = nvme.CSTSFields{}
	ctrl.setReady(false)
	ctrl.abortEvents()
	ctrl.features.reset(ctrl)
	t := ctrl.sub.t
	t.mu.Lock()
	defer t.mu.Unlock()
	ctrl.events = eventState{}
	ctrl.killIO(errReset)
}

func (ctrl *controller) setReady(on bool) {
	t := ctrl.sub.t
	t.mu.Lock()
	defer t.mu.Unlock()
	ctrl.ready = on && !ctrl.gone
}

// shutDown deletes the I/O queues and, if the shutdown is a normal one, makes
// what they have written durable.
func (ctrl *controller) shutDown(normal bool) {
	ctrl.csts.SHST = nvme.CSTSSHSTInProgress
	t := ctrl.sub.t
	t.mu.Lock()
	ctrl.ready = false
	ctrl.killIO(errShutdown)
	t.mu.Unlock()
	f := &finalFlush{ctrl: ctrl, left: 1}
	if normal && !ctrl.sub.discovery {
		f.begin()
	}
	f.done()
}

// finalFlush is the flush of all volatile write caches before a normal shutdown
// is complete.
type finalFlush struct {
	ctrl *controller
	left int
}

func (f *finalFlush) begin() {
	w := f.ctrl.admin.w
	v := w.viewOf(f.ctrl.sub, f.ctrl.port)
	for i := range v.list {
		e := &v.list[i]
		if e.ch == nil || !e.ch.ns.cfg.Backend.Info().VolatileCache {
			continue
		}
		op := &flushOp{f: f, ch: e.ch, op: backend.Op{Kind: backend.Flush}}
		op.op.Owner = op
		f.left++
		e.ch.users++
		if e.ch.ch.Submit(&op.op) {
			op.Done(&op.op)
		}
	}
}

func (f *finalFlush) done() {
	if f.left--; f.left == 0 && f.ctrl.csts.SHST == nvme.CSTSSHSTInProgress {
		f.ctrl.csts.SHST = nvme.CSTSSHSTComplete
	}
}

type flushOp struct {
	f  *finalFlush
	ch *channel
	op backend.Op
}

// Keep implements backend.Owner.
func (*flushOp) Keep(*backend.Op) {}

// Done implements backend.Owner.
func (o *flushOp) Done(*backend.Op) {
	if o.ch.users--; o.ch.users == 0 && o.ch.retired {
		o.f.ctrl.admin.w.untidy = true
	}
	o.f.done()
}
