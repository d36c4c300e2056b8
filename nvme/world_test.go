package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/qpoll/qpoll/poller"
)

const worldBlocks = 128

// version is what a block held from one moment on.
type version struct {
	when, value uint64
}

// world is a controller, its disk, and what is known about both.
type world struct {
	t       *rapid.T
	d       *fakeDisk
	c       *Controller
	pollers [2]*poller.Poller
	k       clock

	mu       sync.Mutex
	queues   []*NamespaceQueue
	problems []string
	now      uint64 // counts submissions and changes of blocks
	history  [worldBlocks][]version
	pending  int // accepted, and not completed
	cancels  []context.CancelFunc
	calls    []pendingCall
}

type pendingCall struct {
	name string
	done chan error
}

// transfer is one I/O under way.
type transfer struct {
	w        *world
	q        *NamespaceQueue
	op       Opcode
	lba, n   int
	value    uint64 // that a write writes
	begun    uint64
	buf      []byte
	vec      [][]byte
	fused    bool
	chain    bool // submit another from the callback
	returned bool
	done     bool
}

func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func newWorld(t *rapid.T) *world {
	d := eventDisk()
	d.disk = make([]byte, worldBlocks*512)
	d.ns.NSZE = worldBlocks
	d.most = 4096
	d.ns.NOIOB = uint16(rapid.SampledFrom([]int{0, 0, 5, 16}).Draw(t, "noiob"))
	d.id.ACL = uint8(rapid.IntRange(0, 3).Draw(t, "acl"))
	if rapid.Bool().Draw(t, "limits") {
		d.nvm = &IdentifyControllerNVM{WZSL: 1, VSL: 1, DMRL: 2, DMRSL: 7, DMSL: 9}
	}
	w := &world{t: t, d: d}
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) + w.k.now.Load() + 1 }
	for i := range w.history {
		w.history[i] = []version{{}}
	}
	d.wrote = w.wrote
	d.hook = w.hook
	for i := range w.pollers {
		p, err := poller.New(poller.Config{Unpinned: true, Clock: now, Idle: poller.Adaptive})
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		w.pollers[i] = p
	}
	var c *Controller
	cfg := &Config{
		Poller: w.pollers[0], ReconnectDelay: time.Millisecond, IOQueues: 4, ConnectTimeout: time.Minute,
		Retries:           rapid.SampledFrom([]int{-1, 1, 0}).Draw(t, "retries"),
		QueueSize:         rapid.IntRange(2, 9).Draw(t, "queue size"),
		FastIOFailTimeout: rapid.SampledFrom([]time.Duration{Forever, Forever, time.Millisecond}).Draw(t, "fast fail"),
		CtrlLossTimeout:   rapid.SampledFrom([]time.Duration{Forever, Forever, 3 * time.Millisecond}).Draw(t, "loss"),
		IOTimeout:         time.Second,
		Events: &Events{
			State: func(c *Controller, _, _ State, _ error) { _ = c.State() },
			Async: func(c *Controller, _ AsyncEvent) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				defer cancel()
				_, _ = c.ActiveNamespaces(ctx)
			},
		},
	}
	c, err := NewController(context.Background(), d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.c = c
	w.open1(0)
	w.open1(1)
	return w
}

// hook withholds I/O commands. On the core.
func (w *world) hook(q *fakeQueue, r *Request) (Status, bool) {
	if q.qp.ID() == 0 {
		return 0, true
	}
	n := len(q.silent)
	if r.Cmd.Flags&FlagFuseMask == FlagFuseSecond && (n == 0 || q.silent[n-1].Cmd.Flags&FlagFuseMask != FlagFuseFirst) {
		w.problem("second of a fused pair without the first")
	}
	return 0, false
}

func (w *world) wrote(lba, blocks int, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range blocks {
		var v uint64
		if data != nil {
			v = binary.LittleEndian.Uint64(data[i*512:])
		}
		w.now++
		w.history[lba+i] = append(w.history[lba+i], version{w.now, v})
	}
}

// had tells whether a block may have held a value since a moment. w.mu is held.
func (w *world) had(block int, value, since uint64) bool {
	h := w.history[block]
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].value == value {
			return true
		}
		if h[i].when <= since {
			return false
		}
	}
	return false
}

// blockValue is what a write of value puts into its block i, so that blocks
// cannot be taken for each other.
func blockValue(value uint64, i int) uint64 {
	if value == 0 {
		return 0
	}
	return value | uint64(i)<<40
}

func fill(b []byte, value uint64) {
	for i := range len(b) / 512 {
		v := blockValue(value, i)
		binary.LittleEndian.PutUint64(b[i*512:], v)
		binary.LittleEndian.PutUint64(b[i*512+504:], v)
	}
}

// plausible are the statuses that an I/O may complete with.
var plausible = []Status{
	0, StatusUnrecoveredReadError, StatusNamespaceNotReady, StatusAbortRequested, StatusCompareFailure,
	StatusLBAOutOfRange, StatusInvalidNamespace, StatusCommandAbortedByHost, StatusHostPathError,
}

func transferDone(arg any, st Status) {
	x := arg.(*transfer)
	w := x.w
	if x.buf == nil {
		for _, v := range x.vec {
			x.buf = append(x.buf, v...)
		}
	}
	w.mu.Lock()
	if !x.returned {
		w.problems = append(w.problems, "completed before the submission returned")
	}
	if x.done {
		w.problems = append(w.problems, "completed twice")
	}
	x.done = true
	w.pending--
	if !slices.Contains(plausible, st.Code()) {
		w.problems = append(w.problems, fmt.Sprintf("opcode %#x completed with %v", x.op, st))
	}
	if st.OK() {
		x.verify()
	}
	w.mu.Unlock()
	if x.chain {
		w.submitOn(x.q, &transfer{op: x.op, lba: x.lba, n: x.n, fused: x.fused})
	}
}

// verify checks a transfer that succeeded. w.mu is held.
func (x *transfer) verify() {
	w := x.w
	for i := range x.n {
		switch x.op {
		case OpRead:
			b := x.buf[i*512:]
			v := binary.LittleEndian.Uint64(b)
			if !w.had(x.lba+i, v, x.begun) || binary.LittleEndian.Uint64(b[504:]) != v {
				w.problems = append(w.problems, fmt.Sprintf("read %d in block %d, which it did not hold", v, x.lba+i))
			}
		case OpWrite, OpWriteZeroes, OpDatasetManagement:
			if !w.wroteSince(x.lba+i, blockValue(x.value, i), x.begun) {
				w.problems = append(w.problems, fmt.Sprintf("opcode %#x left block %d alone", x.op, x.lba+i))
			}
		}
	}
}

func (w *world) wroteSince(block int, value, since uint64) bool {
	for _, v := range w.history[block] {
		if v.when > since && v.value == value {
			return true
		}
	}
	return false
}

// submitOn submits x to q. On the core.
func (w *world) submitOn(q *NamespaceQueue, x *transfer) {
	size := x.n * 512
	x.w, x.q = w, q
	w.mu.Lock()
	w.now++
	x.begun = w.now
	if x.op == OpWrite {
		x.value = x.begun
	}
	w.pending++
	w.mu.Unlock()
	if x.op == OpRead || x.op == OpWrite || x.op == OpCompare {
		if x.vec == nil {
			x.buf = make([]byte, size)
			fill(x.buf, x.value)
		} else {
			all := make([]byte, size)
			fill(all, x.value)
			for i := range x.vec {
				n := min(len(x.vec[i]), len(all))
				x.vec[i], all = all[:n:n], all[n:]
			}
			x.vec = append(x.vec, all)
		}
	}
	lba, n := uint64(x.lba), uint32(x.n)
	var err error
	switch {
	case x.fused:
		w.d.mu.Lock()
		old := slices.Clone(w.d.disk[x.lba*512 : (x.lba+x.n)*512])
		w.d.mu.Unlock()
		err = q.CompareAndWrite(old, x.buf, lba, n, transferDone, x)
	case x.op == OpFlush:
		err = q.Flush(transferDone, x)
	case x.op == OpDatasetManagement:
		half := n / 2
		ranges := []DSMRange{{LBA: lba, Length: n - half}}
		if half > 0 {
			ranges = append(ranges, DSMRange{LBA: lba + uint64(n-half), Length: half})
		}
		err = q.Deallocate(ranges, transferDone, x)
	case x.op == OpWriteZeroes:
		err = q.WriteZeroes(lba, uint64(n), transferDone, x)
	case x.op == OpVerify:
		err = q.Verify(lba, uint64(n), transferDone, x)
	case x.op == OpCompare:
		err = q.Compare(x.buf, lba, n, transferDone, x)
	case x.op == OpRead && x.vec != nil:
		err = q.ReadV(x.vec, lba, n, transferDone, x)
	case x.op == OpWrite && x.vec != nil:
		err = q.WriteV(x.vec, lba, n, transferDone, x)
	case x.op == OpRead:
		err = q.Read(x.buf, lba, n, transferDone, x)
	case x.op == OpWrite:
		err = q.Write(x.buf, lba, n, transferDone, x)
	default: // raw
		err = q.Submit(&Command{Opcode: OpFlush, NSID: 1}, Data{}, func(arg any, cpl *Completion) { transferDone(arg, cpl.Status()) }, x)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.returned = true; err == nil {
		return
	}
	if x.done {
		w.problems = append(w.problems, "refused, and completed")
	}
	w.pending--
	if !w.expected(err) && !errors.Is(err, ErrQueueFull) {
		w.problems = append(w.problems, fmt.Sprintf("opcode %#x: %v", x.op, err))
	}
}

// expected tells whether err may come from a controller that goes through this.
func (w *world) expected(err error) bool {
	var st Status
	if errors.As(err, &st) && slices.Contains(plausible, st.Code()) {
		return true
	}
	for _, ok := range []error{nil, ErrClosed, ErrDead, ErrNotLive, ErrNoNamespace, ErrOutOfRange, ErrUnsupported,
		context.Canceled, io.EOF, errCut, errRefused} {
		if errors.Is(err, ok) {
			return true
		}
	}
	return false
}

// answerAt completes command i of those that are withheld; with status 0 it is
// executed. The halves of a fused pair complete together. On the core.
func (w *world) answerAt(q *fakeQueue, i int, st Status) {
	r := q.silent[i]
	fuse := r.Cmd.Flags & FlagFuseMask
	if fuse == FlagFuseSecond {
		i--
	}
	switch pair := i >= 0 && i+1 < len(q.silent) && q.silent[i].Cmd.Flags&FlagFuseMask == FlagFuseFirst &&
		q.silent[i+1].Cmd.Flags&FlagFuseMask == FlagFuseSecond; {
	case fuse == 0:
		q.silent = slices.Delete(q.silent, i, i+1)
		w.finish(q, r, st)
		return
	case !pair: // the other half was aborted
		q.silent = slices.DeleteFunc(q.silent, func(x *Request) bool { return x == r })
		w.finishAs(q, r, StatusAbortedFailedFused)
		return
	}
	first, second := q.silent[i], q.silent[i+1]
	q.silent = slices.Delete(q.silent, i, i+2)
	if st == 0 {
		st = q.execute(first)
	}
	after := StatusAbortedFailedFused
	if st.OK() {
		after = q.execute(second)
	}
	conn := q.conn
	w.finishAs(q, second, after)
	if q.conn == conn {
		w.finishAs(q, first, st)
	}
}

func (w *world) finish(q *fakeQueue, r *Request, st Status) {
	if st == 0 {
		st = q.execute(r)
	}
	w.finishAs(q, r, st)
}

func (w *world) finishAs(q *fakeQueue, r *Request, st Status) {
	cid := r.Cmd.CID
	if q.qp.Find(cid) != r {
		w.problem("command %#x of the disk is unknown to the host", cid)
		return
	}
	q.qp.Complete(r, &Completion{CID: cid, StatusPhase: uint16(st) << 1})
	if q.qp.Find(cid) != nil {
		w.problem("command %#x found after its completion", cid)
	}
}

// on runs f on the core with a fake queue of the controller.
func (w *world) on(t *rapid.T, f func(q *fakeQueue)) {
	w.d.mu.Lock()
	var ids []uint16
	for id := range w.d.queues {
		if id != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		w.d.mu.Unlock()
		return
	}
	q := w.d.queues[rapid.SampledFrom(ids).Draw(t, "fake queue")]
	w.d.mu.Unlock()
	q.qp.p.CallAnyway(func() { f(q) })
}

// call runs f beside everything else.
func (w *world) call(name string, f func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, pendingCall{name, outcome(f)})
}

func (w *world) open1(i int) {
	ctx := context.Background()
	ns, err := w.c.Namespace(ctx, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	q, err := ns.Queue(ctx, w.pollers[i], QueueConfig{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.queues = append(w.queues, q)
}

// judge looks at how a call ended. w.mu is held.
func (w *world) judge(name string, err error) {
	if !w.expected(err) {
		w.problems = append(w.problems, fmt.Sprintf("%s: %v", name, err))
	}
}

// tearDown lets everything end, and accounts for it.
func (w *world) tearDown() {
	t := w.t
	w.d.mu.Lock()
	w.d.refuse = nil
	w.d.mu.Unlock()
	w.settle("all that was accepted to complete", func() bool {
		w.flushAll()
		w.mu.Lock()
		defer w.mu.Unlock()
		for len(w.calls) > 0 {
			select {
			case err := <-w.calls[0].done:
				w.judge(w.calls[0].name, err)
				w.calls = w.calls[1:]
				continue
			default:
			}
			return false
		}
		return w.pending == 0
	})
	for _, q := range w.queues {
		q.qp.p.CallAnyway(func() { w.accounts(q.qp) })
	}
	if qp := w.c.blocking.qp.Load(); qp != nil {
		qp.p.CallAnyway(func() { w.accounts(qp) })
	}
	if err := w.c.Close(context.Background()); err != nil {
		w.problem("close: %v", err)
	}
	for _, q := range append(w.queues, &NamespaceQueue{qp: w.c.admin}) {
		q.qp.p.CallAnyway(func() { w.accounts(q.qp) })
	}
	for _, p := range w.pollers {
		p.Close()
	}
	w.cancel(nil)
	w.d.mu.Lock()
	w.problems = append(w.problems, w.d.misused...)
	w.d.mu.Unlock()
	if len(w.problems) > 0 {
		t.Fatal(w.problems)
	}
}

func (w *world) settle(what string, f func() bool) {
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			w.mu.Lock()
			w.problems = append(w.problems, fmt.Sprintf("gave up waiting for %s: %d open, state %v, calls %v", what, w.pending, w.c.State(), w.calls))
			w.mu.Unlock()
			return
		}
	}
}

// flushAll answers what was withheld.
func (w *world) flushAll() {
	w.d.mu.Lock()
	var all []*fakeQueue
	for id, q := range w.d.queues {
		if id != 0 {
			all = append(all, q)
		}
	}
	w.d.mu.Unlock()
	for _, q := range all {
		q.qp.p.CallAnyway(func() {
			for len(q.silent) > 0 {
				w.answerAt(q, 0, 0)
			}
		})
	}
}

// accounts checks that an idle queue pair holds nothing. On the core.
func (w *world) accounts(q *QueuePair) {
	events := 0
	if q.ID() == 0 && q.Live() {
		return // event requests stay out
	}
	if q.inflight != events || len(q.free) != len(q.reqs) || len(q.freeOps) != len(q.ops) || len(q.held) != 0 || len(q.waiting) != 0 || q.stalled.head != nil {
		w.problem("queue %d: %d in flight, %d of %d free, %d of %d transfers free, %d held, %d wait, stalled %v", q.ID(), q.inflight,
			len(q.free), len(q.reqs), len(q.freeOps), len(q.ops), len(q.held), len(q.waiting), q.stalled.head != nil)
	}
	free := slices.Clone(q.free)
	slices.Sort(free)
	if len(slices.Compact(free)) != len(q.reqs) {
		w.problem("queue %d: a tracker is free twice", q.ID())
	}
	for i := range q.reqs {
		if r := &q.reqs[i]; r.state != reqFree || r.arg != nil || r.ns != nil || r.Data.Buf != nil {
			w.problem("queue %d: tracker %d is in state %d and holds something", q.ID(), i, r.state)
		}
	}
}
