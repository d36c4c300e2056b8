// Command target copies one namespace to another. What it is about is its test:
// that embeds a target, with memory for namespaces, lets some of the memory
// fail, and takes the target away in the middle of a copy.
//
//	go run ./examples/target
//	go run ./examples/target "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk" 1 2
//	go test -v ./examples/target
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/qpoll/qpoll/examples/internal/demo"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"

	_ "github.com/qpoll/qpoll/tcp" // trtype:tcp
)

func main() { demo.Main(run) }

func run(args []string, out io.Writer) (err error) {
	ctx := context.Background()
	if len(args) == 3 {
		from, err1 := strconv.ParseUint(args[1], 0, 32)
		to, err2 := strconv.ParseUint(args[2], 0, 32)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		return clone(ctx, args[0], nil, uint32(from), uint32(to), out)
	}
	if len(args) != 0 {
		return errors.New("give an address, in quotes, and two namespace IDs, or nothing")
	}
	t, stop, err := serve(backend.NewHeap(8<<20), backend.NewHeap(8<<20))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return clone(ctx, t.Address(""), nil, 1, 2, out)
}

// serve starts a target whose namespaces, from 1 on, keep their data in the
// given backends.
func serve(backends ...backend.Backend) (t *target.Target, stop func() error, err error) {
	s := target.SubsystemConfig{NQN: target.DefaultNQN}
	for _, b := range backends {
		s.Namespaces = append(s.Namespaces, target.NamespaceConfig{Backend: b})
	}
	if t, err = target.New(target.Config{Subsystems: []target.SubsystemConfig{s}}); err != nil {
		return nil, nil, err
	}
	// It runs on any poller, also on one that has other things to do.
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	stop = func() error { return errors.Join(t.Close(), p.Close()) }
	if err := errors.Join(p.Start(), t.Start(p)); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return t, stop, nil
}

// clone copies all of namespace from to namespace to.
func clone(ctx context.Context, address string, cfg *nvme.Config, from, to uint32, out io.Writer) error {
	ctrl, err := nvme.Open(ctx, address, cfg)
	if err != nil {
		return err
	}
	defer ctrl.Close(ctx)
	src, err := ctrl.Namespace(ctx, from)
	if err != nil {
		return err
	}
	dst, err := ctrl.Namespace(ctx, to)
	if err != nil {
		return err
	}
	if src.Size() > dst.Size() {
		return fmt.Errorf("namespace %d is larger than namespace %d", from, to)
	}
	buf := make([]byte, 1<<20)
	for off := int64(0); off < src.Size(); off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), src.Size()-off)]
		if _, err := src.ReadAtContext(ctx, buf, off); err != nil && err != io.EOF {
			return fmt.Errorf("read at %d: %w", off, err)
		}
		if _, err := dst.WriteAtContext(ctx, buf, off); err != nil {
			return fmt.Errorf("write at %d: %w", off, err)
		}
		fmt.Fprintf(out, "copied %d of %d bytes\n", off+int64(len(buf)), src.Size())
	}
	return dst.Flush(ctx)
}
