// Command poller drives a queue from the core of a poller, by callbacks: 32
// reads are outstanding, and each callback begins the next. No I/O allocates.
//
//	go run ./examples/poller
//	go run ./examples/poller "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/qpoll/qpoll/examples/internal/demo"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"

	_ "github.com/qpoll/qpoll/tcp" // trtype:tcp
)

const (
	depth = 32
	total = 100_000
)

func main() { demo.Main(run) }

func run(args []string, out io.Writer) (err error) {
	address, stop, err := demo.Address(args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return measure(context.Background(), address, out)
}

func measure(ctx context.Context, address string, out io.Writer) error {
	ctrl, err := nvme.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer ctrl.Close(ctx)
	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		return err
	}
	// A poller owns a core, if it is not Unpinned, and all of its time, if it
	// is Busy. This one is neither, to be kind to a machine with few cores.
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return errors.Join(err, p.Close())
	}
	defer p.Close()
	q, err := ns.Queue(ctx, p, nvme.QueueConfig{})
	if err != nil {
		return err
	}
	defer q.Close(ctx)

	w := newWork(q)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	if err := p.Call(ctx, w.begin); err != nil { // from here on, w is the core's
		return err
	}
	if err := <-w.ended; err != nil {
		return err
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	fmt.Fprintf(out, "%d reads in %v, %.2f allocations per read\n", total, elapsed.Round(time.Millisecond),
		float64(after.Mallocs-before.Mallocs)/total)
	return nil
}

// work is what the callbacks share. All of it belongs to the core, so there is
// nothing to lock.
type work struct {
	q       *nvme.NamespaceQueue
	slots   [depth]slot
	begun   int
	running int
	err     error
	ended   chan error
}

// slot is one read. It is made once, so that a pointer to it can be handed to
// the queue as the argument of the callback, at no cost.
type slot struct {
	w   *work
	buf []byte
}

func newWork(q *nvme.NamespaceQueue) *work {
	w := &work{q: q, ended: make(chan error, 1)}
	for i := range w.slots {
		w.slots[i] = slot{w, make([]byte, q.BlockSize())}
	}
	return w
}

func (w *work) begin() {
	for i := range w.slots {
		w.next(&w.slots[i])
	}
}

// next begins a read, or ends the work when there are no more.
func (w *work) next(s *slot) {
	if w.begun < total && w.err == nil {
		lba := uint64(w.begun) % w.q.Blocks()
		if w.err = w.q.Read(s.buf, lba, 1, done, s); w.err == nil {
			w.begun++
			w.running++
			return
		}
	}
	if w.running == 0 {
		select {
		case w.ended <- w.err:
		default:
		}
	}
}

// done is called on the core when a read has completed.
func done(arg any, st nvme.Status) {
	s := arg.(*slot)
	s.w.running--
	if !st.OK() {
		s.w.err = st
	}
	s.w.next(s)
}
