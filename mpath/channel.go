//qpoll:hot

package mpath

import (
	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// Channel is a queue to a head, on the core of a poller: an [nvme.Queue] with a
// queue pair for each path. Its methods are for that core unless they say
// otherwise.
//
// While the head has no usable path, but one may come back, I/O is accepted and
// waits, in order. A submission fails with ErrNoPath if none will, and with
// nvme.ErrQueueFull if all trackers are in use, or the queues of all paths that
// it could take are full.
type Channel struct {
	// What every I/O touches comes first.
	p       *poller.Poller
	set     *policy.Set
	links   [policy.MaxPaths]*link
	free    []*request
	waiting requestList // for a path, in order of submission
	parked  requestList // until a path is quiet, or for a while
	seq     uint64
	look    bool // something may have changed for those that are parked
	refuse  bool // no path is waited for
	closed  bool
	width   uint32 // bytes per block
	blocks  uint64
	due     int64 // when the first of those parked for a while is, or noTime
	report  int64 // when statistics are published again

	cold channelCold
}

var (
	_ nvme.Queue    = (*Channel)(nil)
	_ poller.Waiter = (*Channel)(nil)
)

// requestList is a doubly linked list.
type requestList struct {
	head, tail *request
	n          int
}

// BlockSize implements nvme.Queue.
func (c *Channel) BlockSize() int { return int(c.width) }

// Blocks implements nvme.Queue.
func (c *Channel) Blocks() uint64 { return c.blocks }

// Room implements nvme.Queue.
func (c *Channel) Room() int {
	room := 0
	for _, slot := range c.set.Candidates() {
		if l := c.links[slot&(policy.MaxPaths-1)]; l != nil {
			room += l.q.Room()
		}
	}
	if room == 0 && len(c.set.Candidates()) == 0 && !c.refuse {
		return len(c.free) // they wait
	}
	return min(room, len(c.free))
}

// Read implements nvme.Queue.
func (c *Channel) Read(buf []byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	r := c.take()
	if r == nil {
		return c.full()
	}
	r.kind, r.dir, r.safe = kindRead, policy.Read, true
	r.buf, r.lba, r.blocks, r.bytes, r.done, r.arg = buf, lba, uint64(blocks), uint32(len(buf)), done, arg
	return c.start(r)
}

// Write implements nvme.Queue.
func (c *Channel) Write(buf []byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	r := c.take()
	if r == nil {
		return c.full()
	}
	r.kind, r.dir, r.safe = kindWrite, policy.Write, false
	r.buf, r.lba, r.blocks, r.bytes, r.done, r.arg = buf, lba, uint64(blocks), uint32(len(buf)), done, arg
	return c.start(r)
}

// ReadV implements nvme.Queue.
func (c *Channel) ReadV(bufs [][]byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	return c.Issue(&nvme.IO{Op: nvme.OpRead, LBA: lba, Blocks: uint64(blocks), Vec: bufs, Done: done, Arg: arg})
}

// WriteV implements nvme.Queue.
func (c *Channel) WriteV(bufs [][]byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	return c.Issue(&nvme.IO{Op: nvme.OpWrite, LBA: lba, Blocks: uint64(blocks), Vec: bufs, Done: done, Arg: arg})
}

// Compare implements nvme.Queue.
func (c *Channel) Compare(buf []byte, lba uint64, blocks uint32, done nvme.Done, arg any) error {
	return c.Issue(&nvme.IO{Op: nvme.OpCompare, LBA: lba, Blocks: uint64(blocks), Buf: buf, Done: done, Arg: arg})
}

// WriteZeroes implements nvme.Queue.
func (c *Channel) WriteZeroes(lba, blocks uint64, done nvme.Done, arg any) error {
	return c.Issue(&nvme.IO{Op: nvme.OpWriteZeroes, LBA: lba, Blocks: blocks, Done: done, Arg: arg})
}

// Verify implements nvme.Queue.
func (c *Channel) Verify(lba, blocks uint64, done nvme.Done, arg any) error {
	return c.Issue(&nvme.IO{Op: nvme.OpVerify, LBA: lba, Blocks: blocks, Done: done, Arg: arg})
}

// Issue implements nvme.Queue.
func (c *Channel) Issue(io *nvme.IO) error {
	r := c.take()
	if r == nil {
		return c.full()
	}
	r.kind, r.io = kindIssue, *io
	r.dir, r.safe = policy.Other, true
	r.bytes = 0
	switch io.Op {
	case nvme.OpRead:
		r.dir, r.bytes = policy.Read, c.span(io.Blocks)
	case nvme.OpWrite:
		r.dir, r.bytes, r.safe = policy.Write, c.span(io.Blocks), false
	case nvme.OpCompare:
		r.bytes = c.span(io.Blocks)
	case nvme.OpVerify:
	default:
		r.safe = false
	}
	r.lba, r.blocks = io.LBA, io.Blocks
	r.done, r.arg = io.Done, io.Arg
	r.io.Done, r.io.Arg = requestDone, r
	return c.start(r)
}

// span returns the bytes of so many blocks, at most what a policy can count.
func (c *Channel) span(blocks uint64) uint32 {
	return uint32(min(blocks, 1<<31/uint64(max(c.width, 1)))) * c.width
}

// Deallocate implements nvme.Queue.
func (c *Channel) Deallocate(ranges []nvme.DSMRange, done nvme.Done, arg any) error {
	r := c.take()
	if r == nil {
		return c.full()
	}
	r.kind, r.dir, r.safe, r.bytes = kindDeallocate, policy.Other, false, 0
	r.ranges, r.done, r.arg = ranges, done, arg
	return c.start(r)
}

// Flush implements nvme.Queue. What was written by any path before is made
// durable by any other: they lead to one namespace.
func (c *Channel) Flush(done nvme.Done, arg any) error {
	r := c.take()
	if r == nil {
		return c.full()
	}
	r.kind, r.dir, r.safe, r.bytes = kindFlush, policy.Other, true, 0
	r.done, r.arg = done, arg
	return c.start(r)
}

// Submit implements nvme.Queue. An NSID other than nvme.NSIDAll is replaced by
// that which the namespace has on the path. The command takes one path that is
// usable; whatever comes of it there is the caller's to deal with.
func (c *Channel) Submit(cmd *nvme.Command, data nvme.Data, done nvme.CommandDone, arg any) error {
	r := c.take()
	if r == nil {
		return c.full()
	}
	r.kind, r.dir, r.safe, r.bytes = kindRaw, policy.Other, false, data.Len
	switch data.Dir {
	case nvme.DirIn:
		r.dir = policy.Read
	case nvme.DirOut:
		r.dir = policy.Write
	}
	r.cmd, r.data, r.cdone, r.done, r.arg = *cmd, data, done, nil, arg
	return c.start(r)
}

func (c *Channel) sendRaw(q *nvme.NamespaceQueue, r *request) error {
	if r.cmd.NSID != nvme.NSIDAll {
		r.cmd.NSID = q.Namespace().ID()
	}
	return q.Submit(&r.cmd, r.data, rawDone, r)
}

// rawDone takes the completion of a raw command, which is never sent again.
func rawDone(arg any, cpl *nvme.Completion) {
	r := arg.(*request)
	c := r.ch
	st := cpl.Status()
	l := r.path
	c.set.Complete(&r.ticket, c.p.Now(), !st.IsPath())
	if st.IsANA() {
		c.denied(l)
	}
	done, a := r.cdone, r.arg
	c.put(r)
	if done != nil {
		done(a, cpl)
	}
}

// Poll implements poller.Source.
func (c *Channel) Poll(now int64) int {
	if c.set.Total() != 0 {
		c.set.Tick(now)
	}
	if now >= c.report {
		c.publish(now)
	}
	if c.waiting.head == nil && c.parked.head == nil {
		return 0
	}
	return c.pump(now)
}

// Arm implements poller.Waiter.
func (c *Channel) Arm(now int64) (fd int, events int16, deadline int64, ok bool) {
	c.set.Idle(now)
	c.publish(now)
	if c.parked.head != nil && c.due != noTime {
		deadline = c.due
	}
	return -1, 0, deadline, true
}
