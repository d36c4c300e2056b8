package pcietest

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// events are Asynchronous Event Requests, and what there is to report.
type events struct {
	waiting []uint16          // identifiers of the requests
	pending []nvme.AsyncEvent // that no request was there for
	masked  []nvme.LogID      // pages that must be read before their next event
	changed []uint32          // namespaces that have changed, by rising NSID
	due     bool              // to be delivered once the command is complete
}

// maxPending bounds what is kept of events without requests.
const maxPending = 16

// maxChanged is how many namespaces the log can name; with one more it says so.
const maxChanged = 1024

// asyncEvent executes Asynchronous Event Request (5.1.2): it completes when
// there is something to report.
func (c *Controller) asyncEvent(cmd *nvme.Command) (nvme.Status, bool) {
	e := &c.events
	if len(e.waiting) >= asyncLimit {
		return nvme.StatusAsyncEventLimitExceeded | nvme.StatusDNR, true
	}
	e.waiting = append(e.waiting, cmd.CID)
	c.deliver()
	return 0, false
}

// cancel forgets a request.
func (e *events) cancel(cid uint16) bool {
	at := slices.Index(e.waiting, cid)
	if at < 0 {
		return false
	}
	e.waiting = slices.Delete(e.waiting, at, at+1)
	return true
}

// deliver completes requests with what there is to report. An event whose log
// page was not read since the last one waits.
func (c *Controller) deliver() {
	e := &c.events
	for i := 0; i < len(e.pending) && len(e.waiting) > 0; {
		ev := e.pending[i]
		if slices.Contains(e.masked, ev.LogPage()) || c.sqs[0] == nil {
			i++
			continue
		}
		cid := e.waiting[0]
		e.waiting = slices.Delete(e.waiting, 0, 1)
		e.pending = slices.Delete(e.pending, i, i+1)
		e.masked = append(e.masked, ev.LogPage())
		c.complete(c.sqs[0], cid, 0, ev.Result())
	}
}

// raise reports an event, if the host wants it.
func (c *Controller) raise(kind, info uint8, page nvme.LogID) {
	e := &c.events
	if kind == nvme.AsyncNotice && !c.wants(info) {
		return
	}
	ev := nvme.MakeAsyncEvent(kind, info, page, 0)
	if len(e.pending) < maxPending && !slices.Contains(e.pending, ev) {
		e.pending = append(e.pending, ev)
	}
	c.deliver()
}

// wants reports whether the host has asked for a kind of notice.
func (c *Controller) wants(info uint8) bool {
	return c.features.values[nvme.FeatAsyncEventConfiguration]>>(8+info)&1 != 0
}

// Notify reports an asynchronous event of any kind, whatever the host has asked
// for.
func (c *Controller) Notify(ev nvme.AsyncEvent) {
	c.lock()
	defer c.unlock()
	if e := &c.events; len(e.pending) < maxPending {
		e.pending = append(e.pending, ev)
	}
	c.touch(c.deliver)
	c.interrupts()
}

// changed reports that an attached namespace has come, changed or gone.
func (c *Controller) changed(nsid uint32) {
	e := &c.events
	if at, found := slices.BinarySearch(e.changed, nsid); !found && len(e.changed) <= maxChanged {
		e.changed = slices.Insert(e.changed, at, nsid)
	}
	c.touch(func() {
		c.raise(nvme.AsyncNotice, nvme.NoticeNamespaceAttributeChanged, nvme.LogChangedNamespaces)
	})
	c.interrupts()
}

// wasRead is for a log page that was read without retaining its event.
func (c *Controller) wasRead(id nvme.LogID) {
	e := &c.events
	if id == nvme.LogChangedNamespaces {
		e.changed = nil
	}
	e.masked = slices.DeleteFunc(e.masked, func(o nvme.LogID) bool { return o == id })
	e.due = true
}
