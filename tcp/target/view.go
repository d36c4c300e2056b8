//qpoll:hot

package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// channel is the way of one worker to the backend of a namespace.
type channel struct {
	ch        backend.Channel
	ns        *Namespace
	users     int  // requests that refer to it, or to its memory
	retired   bool // the namespace is gone; closed with its last user
	polled    bool // is in worker.channels
	views     bool
	stable    bool
	discards  bool
	blockSize uint32
}

// entry is a namespace as the connections of one subsystem at one port see it.
type entry struct {
	ch       *channel
	nsid     uint32
	shift    uint8       // log2 of the block size
	barred   nvme.Status // what every I/O command gets, if not 0
	writable nvme.Status // what those that write get, if not 0
	blocks   uint64
}

// denseLimit is the largest NSID that is looked up by index.
const denseLimit = 1024

// view is the namespaces of a subsystem at a port, for the connections of one
// worker. It is renewed when the subsystem's generation has changed.
type view struct {
	sub  *Subsystem
	port *Port
	gen  uint64

	list  []entry // by rising NSID
	dense []*entry
}

// find returns the entry of an NSID, or nil.
func (v *view) find(nsid uint32) *entry {
	if i := nsid - 1; i < uint32(len(v.dense)) {
		return v.dense[i]
	}
	if e := v.next(nsid - 1); e != nil && e.nsid == nsid && nsid != 0 {
		return e
	}
	return nil
}

// next returns the entry of the lowest NSID above one, or nil.
func (v *view) next(after uint32) *entry {
	lo, hi := 0, len(v.list)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); v.list[mid].nsid > after {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(v.list) {
		return nil
	}
	return &v.list[lo]
}

// refreshView brings the connection's view of its namespaces up to date. It is
// called after every receive, so that a command sent after a change sees it.
func (c *conn) refreshView() {
	if v := c.view; v != nil && v.gen != v.sub.gen.Load() {
		c.w.renew(v)
	}
}
