package backend

import (
	"sync"
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// fileChannel takes operations to the goroutines of a File and back.
type fileChannel struct {
	file *File
	p    *poller.Poller
	wake func()

	ready atomic.Bool // done is not empty
	mu    sync.Mutex
	done  queue
}

func newFileChannel(b *File, p *poller.Poller) *fileChannel {
	return &fileChannel{file: b, p: p, wake: nothing}
}

// Submit implements Channel.
func (c *fileChannel) Submit(op *Op) bool {
	if !op.inRange(c.file.size.Load()) {
		return true
	}
	op.Status = nvme.StatusSuccess
	switch op.Kind {
	case Deallocate:
		return true
	case Write, WriteZeroes, CompareAndWrite:
		if c.file.readOnly {
			op.Status = nvme.StatusNamespaceWriteProtected | nvme.StatusDNR
			return true
		}
	}
	op.Keep()
	op.home = c
	c.file.enqueue(op)
	return false
}

// executed takes back an operation, on a goroutine of the file's.
func (c *fileChannel) executed(op *Op) {
	c.mu.Lock()
	c.done.push(op)
	c.ready.Store(true)
	c.mu.Unlock()
	// If the poller sleeps; one with a full mailbox does not.
	_ = c.p.Post(c.wake)
}

// Poll implements Channel.
func (c *fileChannel) Poll(int64) (n int) {
	if !c.ready.Load() {
		return 0
	}
	c.mu.Lock()
	list := c.done
	c.done = queue{}
	c.ready.Store(false)
	c.mu.Unlock()
	for ; list.head != nil; n++ {
		op := list.pop()
		op.home = nil
		op.Owner.Done(op)
	}
	return n
}

// Arm implements Channel. Operations that are done wake the poller.
func (c *fileChannel) Arm(int64) (int64, bool) { return 0, !c.ready.Load() }

// Cancel implements Channel.
func (c *fileChannel) Cancel(op *Op) bool { return c.file.cancel(op) }

// Close implements Channel.
func (c *fileChannel) Close() {}
