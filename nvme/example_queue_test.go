package nvme_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// copier copies blocks from one place of a namespace to another. Its methods
// run on the core of its queue, so that its fields need no lock.
type copier struct {
	q        *nvme.NamespaceQueue
	buf      []byte
	from, to uint64
	left     uint64
	ended    chan error
}

// next begins the read of a block, if there is one left.
func (c *copier) next() {
	if c.left == 0 {
		c.ended <- nil
		return
	}
	if err := c.q.Read(c.buf, c.from, 1, haveRead, c); err != nil {
		c.ended <- err
	}
}

func haveRead(arg any, st nvme.Status) {
	c := arg.(*copier)
	if !st.OK() {
		c.ended <- st
		return
	}
	if err := c.q.Write(c.buf, c.to, 1, haveWritten, c); err != nil {
		c.ended <- err
	}
}

func haveWritten(arg any, st nvme.Status) {
	c := arg.(*copier)
	if !st.OK() {
		c.ended <- st
		return
	}
	c.from, c.to, c.left = c.from+1, c.to+1, c.left-1
	c.next()
}

// run begins the chain on the core and waits for its end.
func (c *copier) run(ctx context.Context, p *poller.Poller) error {
	if err := p.Call(ctx, c.next); err != nil {
		return err
	}
	return <-c.ended
}

// A chain of callbacks, none of which waits.
func ExampleNamespace_Queue() {
	address, stop := serve()
	defer stop()
	if err := copyBlocks(context.Background(), address); err != nil {
		fmt.Println(err)
	}
	// Output: block 107 holds "block 7"
}

func copyBlocks(ctx context.Context, address string) error {
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Start(); err != nil {
		return err
	}
	ctrl, err := nvme.Open(ctx, address, &nvme.Config{Poller: p})
	if err != nil {
		return err
	}
	defer ctrl.Close(ctx)
	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		return err
	}
	block := make([]byte, ns.BlockSize())
	for i := range 10 {
		copy(block, fmt.Sprintf("block %d", i))
		if _, err := ns.WriteAt(block, int64(i*len(block))); err != nil {
			return err
		}
	}
	q, err := ns.Queue(ctx, p, nvme.QueueConfig{})
	if err != nil {
		return err
	}
	defer q.Close(ctx)
	c := &copier{q: q, buf: make([]byte, ns.BlockSize()), from: 0, to: 100, left: 10, ended: make(chan error, 1)}
	if err := c.run(ctx, p); err != nil {
		return err
	}
	if _, err := ns.ReadAt(block, int64(107*len(block))); err != nil {
		return err
	}
	fmt.Printf("block 107 holds %q\n", block[:7])
	return nil
}

// Statuses are errors, and errors.Is knows them by name.
func ExampleStatus() {
	address, stop := serve()
	defer stop()
	ctx := context.Background()
	ctrl, err := nvme.Open(ctx, address, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ctrl.Close(ctx)
	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	other := make([]byte, ns.BlockSize())
	other[0] = 1
	err = ns.CompareAt(ctx, other, 0) // the block holds zeros
	fmt.Println(errors.Is(err, nvme.StatusCompareFailure))
	// Output: true
}
