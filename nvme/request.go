//qpoll:hot

package nvme

// Done is called once, on the core of the queue's poller, when a command or a
// whole split transfer has completed. arg is what was given at submission; a
// pointer in it costs no allocation. It may submit to any queue of the same
// poller. It must not block.
type Done func(arg any, st Status)

// CommandDone is the form of Done for commands whose result matters. cpl is
// valid during the call only.
type CommandDone func(arg any, cpl *Completion)

// Data names the memory that a command reads or writes: either Buf, or Vec
// from byte Off on. The memory belongs to the queue from submission to
// completion.
type Data struct {
	Buf []byte
	Vec [][]byte
	Off int    // bytes of Vec to skip; 0 with Buf
	Len uint32 // bytes to transfer
	Dir Direction
}

type reqState uint8

const (
	reqFree   reqState = iota // on the free stack
	reqTaken                  // being filled in, or aborted before it was posted
	reqPosted                 // handed to the transport, not completed
	reqHeld                   // waits for the queue to become live
)

type reqFlags uint8

const (
	reqReplay   reqFlags = 1 << iota // may be sent again after a reconnect
	reqInternal                      // belongs to the queue or controller itself
	reqNoTime                        // never times out (Asynchronous Event Request)
	reqTimed                         // found overdue once
	reqOverdue                       // found overdue for twice the timeout
)

// Request is a tracker: one command, its data, and who wants to know. A queue
// pair owns a fixed set of them, indexed by command identifier. Transports
// read Cmd and Data; they may set Cmd.DPTR and Cmd.Flags' PSDT bits.
type Request struct {
	Cmd  Command
	Data Data

	done  Done
	cdone CommandDone
	arg   any // *op with pieceDone: one piece of a split transfer
	ns    *Namespace

	submitted int64  // poller clock, ns
	seq       uint64 // order of submission within the queue pair
	index     uint16
	state     reqState
	flags     reqFlags
	retries   uint8
}

// Index returns the tracker's index, from 0 to the queue pair's Trackers()-1:
// what a transport indexes its own per-command state with.
func (r *Request) Index() int { return int(r.index) }

// Submitted returns the poller clock at submission, in nanoseconds.
func (r *Request) Submitted() int64 { return r.submitted }

// command begins a command and keeps its identifier. Fields are set in place,
// here and by those who fill in the rest: a value put together elsewhere would
// be copied by loads that are wider than the stores before them, which wait for
// those to reach the cache.
func (r *Request) command(o Opcode, nsid uint32) *Command {
	c := &r.Cmd
	cid := c.CID
	*c = Command{}
	c.Opcode, c.CID, c.NSID = o, cid, nsid
	return c
}

// buffer sets r's data, which release has cleared, to one buffer.
func (r *Request) buffer(b []byte, n uint32, dir Direction) {
	d := &r.Data
	d.Buf, d.Len, d.Dir = b, n, dir
}
