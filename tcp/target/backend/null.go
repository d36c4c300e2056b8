//qpoll:hot

package backend

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// NullMaxRead is the longest read in bytes that a Null takes.
const NullMaxRead = 4 << 20

// zeros is what every Null reads as.
var zeros [NullMaxRead]byte

// Null is a Backend that forgets what is written and reads as zeros. It is for
// measuring everything else. Compare compares with zeros.
type Null struct {
	size atomic.Int64
}

// NewNull returns a Null of size bytes.
func NewNull(size int64) *Null {
	n := &Null{}
	n.size.Store(max(size, 0))
	return n
}

// Info implements Backend.
func (n *Null) Info() Info {
	return Info{Size: n.size.Load(), Inline: true, Views: true, Stable: true, Discards: true, Zeroes: true}
}

// Resize implements Resizer.
func (n *Null) Resize(size int64) error {
	if size < 0 {
		return errSize(size)
	}
	n.size.Store(size)
	return nil
}

// Open implements Backend.
func (n *Null) Open(*poller.Poller) (Channel, error) { return &nullChannel{inline{}, n}, nil }

// Close implements Backend.
func (n *Null) Close() error { return nil }

type nullChannel struct {
	inline
	null *Null
}

func (c *nullChannel) Submit(op *Op) bool {
	if !op.inRange(c.null.size.Load()) {
		return true
	}
	op.Status = nvme.StatusSuccess
	switch op.Kind {
	case Read:
		if op.Length > NullMaxRead {
			op.Status = nvme.StatusInvalidField | nvme.StatusDNR
			return true
		}
		op.Data = zeros[:op.Length:op.Length]
	case Compare, CompareAndWrite:
		if !isZero(op.Data) {
			op.Status = nvme.StatusCompareFailure
		}
	}
	return true
}

// isZero reports whether b holds zeros only.
func isZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), NullMaxRead)
		if string(b[:n]) != string(zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// inline has the methods of a channel whose operations are done at once.
type inline struct{}

func (inline) Poll(int64) int          { return 0 }
func (inline) Arm(int64) (int64, bool) { return 0, true }
func (inline) Cancel(*Op) bool         { return false }
func (inline) Close()                  {}
