package tcp

import "github.com/qpoll/qpoll/nvme"

// Received returns how many bytes the connection of a queue pair has received.
// On the core.
func Received(qp *nvme.QueuePair) uint64 { return qp.Transport().(*conn).received }

// Pending returns how many bytes the connection has queued and not sent.
func Pending(qp *nvme.QueuePair) int { return qp.Transport().(*conn).tx.bytes }

// Backlog returns how many commands wait for header memory.
func Backlog(qp *nvme.QueuePair) int { return qp.Transport().(*conn).backlog.n }

// Waiting returns how many commands stand in the queue of those with data
// asked for.
func Waiting(qp *nvme.QueuePair) int { return qp.Transport().(*conn).r2ts.n }

// Receives and Sends return how many system calls were made.
func Receives(qp *nvme.QueuePair) uint64 { return qp.Transport().(*conn).receives }

// Sends returns how many calls sent something.
func Sends(qp *nvme.QueuePair) uint64 { return qp.Transport().(*conn).sends }

// FD returns the socket.
func FD(qp *nvme.QueuePair) int { return qp.Transport().(*conn).fd }

// ReceiveMemory returns the size of the staging memory.
func ReceiveMemory(qp *nvme.QueuePair) int { return len(qp.Transport().(*conn).rx) }

// Sizes of the engine that tests aim at.
const (
	TxMemory   = txMemory
	TxEnough   = txEnough
	CopyBelow  = copyBelow
	DirectFrom = directFrom
)

// SwapFD has the connection use another socket, and returns the one it had.
func SwapFD(qp *nvme.QueuePair, fd int) int {
	c := qp.Transport().(*conn)
	old := c.fd
	c.fd = fd
	return old
}

// Pieces returns how many pieces the send queue has room for.
func Pieces(qp *nvme.QueuePair) int { return cap(qp.Transport().(*conn).tx.iov) }

// Lingering returns whether a connection that was given up is still open for
// its peer to read why.
func Lingering(qp *nvme.QueuePair) bool { return qp.Transport().(*conn).cold.linger.fd >= 0 }
