package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

// maxAsyncRequests is how many Asynchronous Event Requests are kept with the
// controller, if it takes as many (AERL).
const maxAsyncRequests = 4

// The events that the library acts on or that a host should hear of.
const (
	asyncWanted = AsyncConfigNamespaceAttribute | AsyncConfigFirmwareActivation | AsyncConfigANAChange |
		AsyncConfigDiscovery
	asyncCriticalWarnings = 0x1f // of the SMART / Health log
)

// asyncState handles asynchronous events away from the poller: the log page
// that belongs to an event is read, which re-enables events of its kind, then
// the request is posted again, then the listener is told.
type asyncState struct {
	c       *Controller
	want    int                // requests to keep posted; set before live
	round   uint64             // counts connections; on the admin queue's core
	pending chan asyncReceived // at most one per posted request
	ctx     context.Context    // ends with the controller
}

// asyncReceived is an event, and the connection that it came from: only there
// is its request missing now.
type asyncReceived struct {
	event AsyncEvent
	round uint64
}

func (a *asyncState) init(c *Controller) {
	a.c, a.ctx = c, c.life
	a.pending = make(chan asyncReceived, 4*maxAsyncRequests)
	c.wg.Go(a.work)
}

// configureEvents turns on the notices that the controller offers.
func (c *Controller) configureEvents(ctx context.Context, id *IdentifyController) error {
	c.async.want = min(int(id.AERL)+1, maxAsyncRequests)
	mask := id.OAES & asyncWanted
	if !id.IsDiscovery() {
		mask |= asyncCriticalWarnings
	}
	if mask == 0 {
		return nil
	}
	cmd := Command{Opcode: AdminSetFeatures, CDW10: uint32(FeatAsyncEventConfiguration), CDW11: mask}
	_, err := c.admin.DoInternal(ctx, &cmd, nil)
	var st Status
	if errors.As(err, &st) && !st.IsPath() {
		c.cfg.Logger.Warn("Set Features (Asynchronous Event Configuration) rejected", "controller", c.t.Address(), "status", st.Error())
		return nil
	}
	return c.opError("configure asynchronous events", 0, err)
}

// arm posts the requests of a new connection. On the admin queue's core.
func (a *asyncState) arm() {
	a.round++
	for len(a.pending) > cap(a.pending)-a.want {
		select { // of connections long gone: each request has room
		case <-a.pending:
		default:
		}
	}
	for range a.want {
		a.post()
	}
}

func (a *asyncState) post() {
	cmd := Command{Opcode: AdminAsyncEvent}
	if err := a.c.admin.postOwn(&cmd, Data{}, reqNoTime, asyncDone, a); errors.Is(err, ErrQueueFull) {
		round := a.round
		a.c.p.AfterFunc(10*time.Millisecond, func() { a.postAgain(round) })
	}
}

// postAgain posts a request of the given connection, if that still lives. The
// next one begins with all of its own.
func (a *asyncState) postAgain(round uint64) {
	if round == a.round && a.c.admin.Live() {
		a.post()
	}
}

func asyncDone(arg any, cpl *Completion) {
	a := arg.(*asyncState)
	if !cpl.Status().OK() {
		return // aborted with the queue, or more than AERL: not posted again
	}
	select {
	case a.pending <- asyncReceived{AsyncEvent(cpl.Result), a.round}:
	default: // cannot be: every posted request has room
	}
}

func (a *asyncState) work() {
	for {
		select {
		case <-a.ctx.Done():
			return
		case e := <-a.pending:
			a.handle(e.event)
			postLater(a.c.p, func() { a.postAgain(e.round) })
		}
	}
}

func (a *asyncState) handle(e AsyncEvent) {
	c := a.c
	c.cfg.Logger.Info("asynchronous event", "controller", c.t.Address(), "event", e.String())
	var err error
	switch e.Type() {
	case AsyncNotice:
		err = a.notice(e)
	case AsyncError, AsyncSMART:
		err = a.clear(e)
	}
	if err != nil && a.ctx.Err() == nil {
		c.cfg.Logger.Warn("asynchronous event", "controller", c.t.Address(), "event", e.String(), "error", err)
	}
	if f := c.cfg.Events.Async; f != nil {
		a.tell(func() { f(c, e) })
	}
}

// tell has the listener called once it has heard most of what went before: a
// controller may report faster than a listener listens, but not faster than
// its requests are posted again.
func (a *asyncState) tell(f func()) { a.c.events.postInTurn(a.ctx, f) }

// clear reads the event's log page so that the controller reports again.
func (a *asyncState) clear(e AsyncEvent) error {
	size := 512
	switch e.LogPage() {
	case LogError:
		size = 64
	case LogChangedNamespaces:
		size = 4096
	}
	return a.c.LogPage(a.ctx, e.LogPage(), make([]byte, size), LogOptions{NSID: 0xffffffff})
}

func (a *asyncState) notice(e AsyncEvent) error {
	c := a.c
	switch e.Info() {
	case NoticeNamespaceAttributeChanged:
		return a.namespacesChanged()
	case NoticeANAChange:
		log, err := c.ReadANALog(a.ctx)
		if err != nil {
			return err
		}
		if moved := c.movedNamespaces(log); len(moved) > 0 {
			err = c.refreshNamespaces(a.ctx, moved)
		}
		if f := c.cfg.Events.ANAChanged; f != nil {
			a.tell(func() { f(c, log) })
		}
		return err
	case NoticeDiscoveryLogChange:
		// The log is read by whoever uses it; reading its header suffices to
		// have the next change reported.
		if err := c.LogPage(a.ctx, LogDiscovery, make([]byte, DiscoveryHeaderSize), LogOptions{}); err != nil {
			return err
		}
		if f := c.cfg.Events.DiscoveryChanged; f != nil {
			a.tell(func() { f(c) })
		}
	default:
		return a.clear(e)
	}
	return nil
}

// movedNamespaces returns those of the known namespaces that the ANA log has in
// another group than Identify Namespace had: nothing else tells of that.
func (c *Controller) movedNamespaces(log *ANALog) (moved []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range log.Groups {
		for _, id := range g.NSIDs {
			if ns := c.ns[id]; ns != nil && !ns.gone.Load() && ns.ANAGroup() != g.ID {
				moved = append(moved, id)
			}
		}
	}
	return moved
}

// namespacesChanged reads the changed namespace list, without which no further
// event would come, and brings the known namespaces up to date.
func (a *asyncState) namespacesChanged() error {
	c := a.c
	buf := make([]byte, 4096)
	if err := c.LogPage(a.ctx, LogChangedNamespaces, buf, LogOptions{NSID: 0xffffffff}); err != nil {
		return err
	}
	var list []uint32
	for i := 0; i < len(buf); i += 4 {
		n := binary.LittleEndian.Uint32(buf[i:])
		if n == 0 {
			break
		}
		if n == 0xffffffff { // more than the list holds
			list = nil
			break
		}
		list = append(list, n)
	}
	err := c.refreshNamespaces(a.ctx, list)
	if f := c.cfg.Events.NamespacesChanged; f != nil {
		a.tell(func() { f(c, list) })
	}
	return err
}
