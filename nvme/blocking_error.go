package nvme

import (
	"fmt"
	"strings"
)

// ioError says what a blocking call on a namespace was about.
func (ns *Namespace) ioError(op Opcode, off, n int64, err error) error {
	if err == nil {
		return nil
	}
	what := strings.ToLower(IOName(op))
	switch op {
	case OpDatasetManagement:
		what = "deallocate"
		fallthrough
	default:
		what += fmt.Sprintf(" of %d bytes at %d, namespace %d", n, off, ns.id)
	case OpFlush:
		what += fmt.Sprintf(" of namespace %d", ns.id)
	}
	return ns.callError(what, err)
}

// callError is opError for what goes through the queue of the blocking calls.
// Of what went wrong with the queue itself, it keeps what was attempted.
func (ns *Namespace) callError(what string, err error) error {
	if err == nil {
		return nil
	}
	queue := -1
	if qp := ns.c.blocking.qp.Load(); qp != nil {
		queue = int(qp.cold.id)
	}
	if o, ok := err.(*OpError); ok {
		what, queue, err = what+": "+o.Op, o.Queue, o.Err
	}
	return &OpError{Op: what, Controller: ns.c.t.Address(), Queue: queue, Err: err}
}
