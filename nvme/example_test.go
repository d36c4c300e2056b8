package nvme_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"

	_ "github.com/qpoll/qpoll/tcp" // trtype:tcp
)

func quickStart(ctx context.Context, address string) error {
	ctrl, err := nvme.Open(ctx, address, nil) // "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:..."
	if err != nil {
		return err
	}
	defer ctrl.Close(ctx)
	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		return err
	}

	// From any goroutine: a namespace is an io.ReaderAt and an io.WriterAt.
	block := make([]byte, ns.BlockSize())
	copy(block, "hello")
	if _, err := ns.WriteAt(block, 0); err != nil {
		return err
	}

	// On a core of its own, with callbacks: nothing waits, locks or allocates.
	cores, err := poller.AllowedCores()
	if err != nil {
		return err
	}
	p, err := poller.New(poller.Config{Core: cores[0]})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Start(); err != nil {
		return err
	}
	q, err := ns.Queue(ctx, p, nvme.QueueConfig{})
	if err != nil {
		return err
	}
	defer q.Close(ctx)
	buf, done := make([]byte, ns.BlockSize()), make(chan nvme.Status, 1)
	callback := func(_ any, st nvme.Status) { done <- st }
	post := func() { err = q.Read(buf, 0, 1, callback, nil) }
	if callErr := p.Call(ctx, post); callErr != nil || err != nil { // post runs on the core
		return errors.Join(callErr, err)
	}
	select {
	case st := <-done: // after a lost connection, once it is back or given up
		if !st.OK() {
			return st
		}
	case <-ctx.Done():
		return context.Cause(ctx) // q.Close ends what still uses buf
	}
	fmt.Printf("%s\n", buf[:5])
	return nil
}

func Example() {
	address, stop := serve()
	defer stop()
	if err := quickStart(context.Background(), address); err != nil {
		fmt.Println(err)
	}
	// Output: hello
}
