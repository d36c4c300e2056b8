//qpoll:hot

package mpath

import (
	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// kind says which call an I/O was submitted by, and so how it is sent again.
type kind uint8

const (
	kindRead kind = iota
	kindWrite
	kindIssue      // io has it all
	kindDeallocate // ranges
	kindFlush
	kindRaw // cmd and data
)

// request is one I/O of a channel, from submission to completion, over all the
// paths that it takes. What a plain read or write touches comes first.
type request struct {
	ticket policy.Ticket
	ch     *Channel
	path   *link // that it was sent on last
	done   nvme.Done
	arg    any
	buf    []byte
	lba    uint64
	blocks uint64
	seq    uint64 // order of submission
	bytes  uint32
	kind   kind
	dir    policy.Dir
	state  requestState
	safe   bool // to be sent twice at a time: it only reads, or flushes
	cancel bool // the caller has given up
	slow   bool // again is in use

	again // while it takes more than one attempt

	io     nvme.IO
	ranges []nvme.DSMRange
	cmd    nvme.Command
	data   nvme.Data
	cdone  nvme.CommandDone
}

type requestState uint8

const (
	requestFree requestState = iota
	requestSent
	requestWaiting // for a path, in Channel.waiting
	requestParked  // in Channel.parked
)

// again is what an I/O carries that could not be done at once.
type again struct {
	next, prev *request
	status     nvme.Status // why the last attempt failed
	tried      uint32      // slots that refused it in this round
	rounds     uint16      // in which all paths did
	quiet      bool        // parked until path is quiet, else until due
	of         uint64      // the association that has to be
	due        int64
}

// take returns a free request, or nil.
func (c *Channel) take() *request {
	n := len(c.free)
	if n == 0 {
		return nil
	}
	r := c.free[n-1]
	c.free = c.free[:n-1]
	c.seq++
	r.seq = c.seq
	return r
}

// put gives a request back. What only some kinds use is cleared by those who
// know.
func (c *Channel) put(r *request) {
	if r.kind >= kindIssue || r.slow {
		r.clear()
	}
	r.state = requestFree
	r.path, r.done, r.arg, r.buf = nil, nil, nil, nil
	n := len(c.free)
	c.free = c.free[:n+1]
	c.free[n] = r
}

func (r *request) clear() {
	r.again = again{}
	r.io, r.ranges, r.cdone, r.data = nvme.IO{}, nil, nil, nvme.Data{}
	r.cancel, r.slow = false, false
}

// start sends a new request, or has it wait. On an error it is free again.
func (c *Channel) start(r *request) error {
	now := c.p.Now()
	if c.waiting.head != nil {
		return c.startSlow(r, nil)
	}
	slot := c.set.Select(now, r.bytes, r.dir)
	if slot < 0 {
		return c.startSlow(r, nil)
	}
	if err := c.dispatch(r, slot, now); err != nil {
		return c.startSlow(r, err)
	}
	return nil
}

// dispatch sends r on the path of a slot, and accounts for it. On an error
// nothing is left of that.
func (c *Channel) dispatch(r *request, slot int, now int64) error {
	l := c.links[slot&(policy.MaxPaths-1)]
	if l == nil {
		return nvme.ErrNotLive
	}
	r.path = l
	c.set.Dispatch(&r.ticket, slot, now, r.bytes, r.dir)
	r.state = requestSent
	err := c.send(l.q, r)
	if err != nil {
		c.set.Release(&r.ticket, now)
	}
	return err
}

func (c *Channel) send(q *nvme.NamespaceQueue, r *request) error {
	switch r.kind {
	case kindRead:
		return q.Read(r.buf, r.lba, uint32(r.blocks), requestDone, r)
	case kindWrite:
		return q.Write(r.buf, r.lba, uint32(r.blocks), requestDone, r)
	case kindIssue:
		return q.Issue(&r.io)
	case kindDeallocate:
		return q.Deallocate(r.ranges, requestDone, r)
	case kindFlush:
		return q.Flush(requestDone, r)
	}
	return c.sendRaw(q, r)
}

// requestDone takes a completion from a path.
func requestDone(arg any, st nvme.Status) {
	r := arg.(*request)
	c := r.ch
	if st != nvme.StatusSuccess {
		c.ended(r, st)
		return
	}
	now := c.p.Now()
	l := r.path
	l.count(r.dir, now-r.ticket.At())
	c.set.Complete(&r.ticket, now, true)
	done, a := r.done, r.arg
	c.put(r)
	if done != nil {
		done(a, nvme.StatusSuccess)
	}
}

// count notes the latency of an I/O.
func (l *link) count(dir policy.Dir, ns int64) {
	s := &l.latency[dir&(latencyDirs-1)]
	s.Count++
	s.Sum += uint64(ns)
	if uint64(ns) > s.Max {
		s.Max = uint64(ns)
	}
}
