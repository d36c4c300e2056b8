package target

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// eventState is what a controller has to report by asynchronous events. It is
// under the target's lock.
type eventState struct {
	enabled uint32             // the feature's value
	kinds   [eventKinds]report // notices that a log page belongs to
	changed []uint32           // namespaces that have changed, by rising NSID
	other   []nvme.AsyncEvent  // see Subsystem.Notify
	posted  bool               // deliver is on its way
}

// report is where a kind of notice is: it is not repeated until its log page
// was read.
type report struct {
	pending bool // to be reported
	masked  bool // was reported, and the log page was not read since
}

// eventKind is a notice that a log page belongs to.
type eventKind uint8

const (
	eventNamespace eventKind = iota
	eventANA
	eventDiscovery
	eventKinds
)

var eventOf = [eventKinds]struct {
	bit   uint32
	event nvme.AsyncEvent
}{
	eventNamespace: {nvme.AsyncConfigNamespaceAttribute, nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeNamespaceAttributeChanged, nvme.LogChangedNamespaces, 0)},
	eventANA:       {nvme.AsyncConfigANAChange, nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeANAChange, nvme.LogANA, 0)},
	eventDiscovery: {nvme.AsyncConfigDiscovery, nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeDiscoveryLogChange, nvme.LogDiscovery, 0)},
}

// maxOther bounds what Subsystem.Notify leaves pending.
const maxOther = 16

// maxChanged is how many namespaces the changed namespace list can name; with
// one more it says that it cannot.
const maxChanged = 1024

// asyncEvent executes an Asynchronous Event Request: it is answered when there
// is something to report.
func (c *conn) asyncEvent(r *request) {
	ctrl := c.ctrl
	if len(ctrl.aers) >= asyncLimit {
		c.fail(r, nvme.StatusAsyncEventLimitExceeded|nvme.StatusDNR)
		return
	}
	r.state = reqHeld
	ctrl.aers = append(ctrl.aers, r)
	ctrl.deliver()
}

// deliver answers Asynchronous Event Requests with what there is to report. On
// the admin queue's core.
func (ctrl *controller) deliver() {
	for len(ctrl.aers) > 0 && ctrl.admin.state == connReady {
		e, ok := ctrl.nextEvent()
		if !ok {
			return
		}
		r := ctrl.aers[0]
		ctrl.aers = slices.Delete(ctrl.aers, 0, 1)
		ctrl.admin.status(r, nvme.StatusSuccess, e.Result())
	}
}

// nextEvent takes the next event to report.
func (ctrl *controller) nextEvent() (nvme.AsyncEvent, bool) {
	t := ctrl.sub.t
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &ctrl.events
	s.posted = false
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.pending && !k.masked {
			*k = report{masked: true}
			return eventOf[i].event, true
		}
	}
	if len(s.other) > 0 {
		e := s.other[0]
		s.other = slices.Delete(s.other, 0, 1)
		return e, true
	}
	return 0, false
}

// raise has an event reported, if the host wants it. The caller holds the
// target's lock.
func (ctrl *controller) raise(kind eventKind) {
	s := &ctrl.events
	if s.enabled&eventOf[kind].bit == 0 || s.kinds[kind].masked {
		return
	}
	s.kinds[kind].pending = true
	ctrl.wake()
}

// notify has any event reported. The caller holds the target's lock.
func (ctrl *controller) notify(e nvme.AsyncEvent) {
	if s := &ctrl.events; len(s.other) < maxOther {
		s.other = append(s.other, e)
		ctrl.wake()
	}
}

// wake has deliver run on the core of the admin queue.
func (ctrl *controller) wake() {
	if !ctrl.events.posted {
		ctrl.events.posted = true
		ctrl.admin.w.post(ctrl.deliver)
	}
}

// setEvents takes the events that the host wants.
func (ctrl *controller) setEvents(v uint32) {
	ctrl.features.events = v
	t := ctrl.sub.t
	t.mu.Lock()
	defer t.mu.Unlock()
	ctrl.events.enabled = v
}

// logRead allows the next event of a kind: its log page was read.
func (ctrl *controller) logRead(kind eventKind) {
	t := ctrl.sub.t
	t.mu.Lock()
	defer t.mu.Unlock()
	ctrl.events.kinds[kind] = report{}
	if kind == eventNamespace {
		ctrl.events.changed = nil
	}
}

// abortEvents ends all Asynchronous Event Requests.
func (ctrl *controller) abortEvents() {
	for _, r := range ctrl.aers {
		ctrl.admin.fail(r, nvme.StatusAbortRequested)
	}
	ctrl.aers = nil
}

// namespaceChanged tells all controllers that a namespace has come, changed or
// gone. The caller holds the target's lock.
func (s *Subsystem) namespaceChanged(nsid uint32) {
	s.anaChanges++ // the log lists namespaces
	for _, c := range s.controllers {
		list := c.events.changed
		if at, found := slices.BinarySearch(list, nsid); !found && len(list) <= maxChanged {
			c.events.changed = slices.Insert(list, at, nsid)
		}
		c.raise(eventNamespace)
	}
}

// anaChanged tells the controllers at a port, or all of them for nil, that the
// ANA log has changed. The caller holds the target's lock.
func (s *Subsystem) anaChanged(p *Port) {
	for _, c := range s.controllers {
		if p == nil || c.port == p {
			c.raise(eventANA)
		}
	}
}
