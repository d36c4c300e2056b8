//qpoll:hot

package backend

import "github.com/qpoll/qpoll/nvme"

// Kind is what an operation does.
type Kind uint8

// The kinds of operations.
const (
	Read Kind = iota
	Write
	Flush       // everything written before it was submitted becomes durable
	Compare     // Data with what is stored; nvme.StatusCompareFailure if they differ
	WriteZeroes // the range reads as zeros afterwards
	Deallocate  // the range is not needed any more; it may read as anything that it held, or zeros
	Verify      // the range can be read

	// CompareAndWrite is a Compare with Data and, if that succeeds, a Write of
	// Second, as one atomic step for everything that uses the backend.
	CompareAndWrite
	kinds
)

var kindNames = [kinds]string{"read", "write", "flush", "compare", "write zeroes", "deallocate", "verify", "compare and write"}

// String returns the kind in words.
func (k Kind) String() string {
	if k >= kinds {
		return "unknown kind"
	}
	return kindNames[k]
}

// moves reports whether operations of the kind transfer data.
func (k Kind) moves() bool {
	return k == Read || k == Write || k == Compare || k == CompareAndWrite
}

// Op is one operation on a Backend. Its submitter owns it, and leaves it alone
// from Submit until it is done.
type Op struct {
	Kind Kind
	FUA  bool // of a write: durable when it is done

	// Status is the outcome, valid once the operation is done.
	Status nvme.Status

	// Offset and Length are the range in bytes. A Flush has none.
	Offset, Length int64

	// Data is what to write or to compare with, or memory for what is read:
	// Length bytes. For a read of a backend with views it is set by the
	// backend, to memory that stays valid until the backend is closed.
	Data []byte

	// Second is what a CompareAndWrite writes.
	Second []byte

	// Owner is told when an operation ends that Submit did not finish.
	Owner Owner

	// Fields of the channel that holds the operation.
	due  int64
	seq  uint64
	next *Op
	home *fileChannel
}

// Owner is who submits operations. Its methods are called on the core.
type Owner interface {
	// Keep makes op.Data last until op is done: without, it may be gone when
	// Submit returns. It may change op.Data.
	Keep(op *Op)

	// Done takes an operation back.
	Done(op *Op)
}

// Keep makes Data and Second last until the operation is done. Only data that
// is to be written or compared needs it.
func (op *Op) Keep() {
	if op.Kind != Read && op.Kind.moves() {
		op.Owner.Keep(op)
	}
}

// Finish ends an operation for which Submit has returned false.
func (op *Op) Finish(s nvme.Status) {
	op.Status = s
	op.Owner.Done(op)
}

// within reports whether the range of op lies within size bytes.
func (op *Op) within(size int64) bool {
	return op.Offset >= 0 && op.Length >= 0 && op.Length <= size && op.Offset <= size-op.Length
}

// inRange is within, and sets Status if it is not so. A flush has no range.
func (op *Op) inRange(size int64) bool {
	if op.Kind == Flush || op.within(size) {
		return true
	}
	op.Status = nvme.StatusLBAOutOfRange | nvme.StatusDNR
	return false
}
