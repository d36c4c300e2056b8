// Command pcie-hello writes a block to a drive over PCI Express and reads it
// back, by callbacks on the core of a poller. The buffers are memory that the
// drive reaches by itself, so that nothing is copied. It puts back what the block
// held before.
//
//	go run ./examples/pcie-hello
//	go run ./examples/pcie-hello "trtype:pcie traddr:0000:01:00.0"
//	go run ./examples/pcie-hello "trtype:vfio-user traddr:/run/disk0"
//
// Without an address it runs on a controller in software.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/qpoll/qpoll/examples/internal/demo"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

func main() { demo.Main(run) }

func run(args []string, out io.Writer) (err error) {
	ctx := context.Background()
	ctrl, stop, err := demo.Controller(ctx, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ctrl.Close(ctx), stop()) }()
	return hello(ctx, ctrl, out)
}

func hello(ctx context.Context, ctrl *nvme.Controller, out io.Writer) error {
	id := ctrl.Identify()
	fmt.Fprintf(out, "%s, serial number %s\n", id.ModelNumber(), id.SerialNumber())
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

	// Two blocks of memory for DMA: what was there, and what we write and read.
	size := ns.BlockSize()
	memory, err := ctrl.Alloc(2 * size)
	if err != nil {
		return err
	}
	defer ctrl.Free(memory)
	before, block := memory[:size:size], memory[size:2*size]

	w := &work{q: q, ended: make(chan error, 1)}
	w.steps = []func() error{
		func() error { return q.Read(before, 0, 1, next, w) },
		func() error { copy(block, "hello, drive"); return q.Write(block, 0, 1, next, w) },
		func() error { clear(block); return q.Read(block, 0, 1, next, w) },
		func() error {
			fmt.Fprintf(out, "read %q\n", block[:len("hello, drive")])
			return q.Write(before, 0, 1, next, w)
		},
	}
	if err := p.Call(ctx, func() { next(w, 0) }); err != nil {
		return err
	}
	return <-w.ended
}

// work is a chain of I/Os, each of which begins when the one before has
// completed. It belongs to the core.
type work struct {
	q     *nvme.NamespaceQueue
	steps []func() error
	ended chan error
}

// next is the callback of each I/O: it begins the next one.
func next(arg any, st nvme.Status) {
	w := arg.(*work)
	switch {
	case !st.OK():
		w.ended <- st
	case len(w.steps) == 0:
		w.ended <- nil
	default:
		step := w.steps[0]
		w.steps = w.steps[1:]
		if err := step(); err != nil {
			w.ended <- err
		}
	}
}
