// Command hello connects to a controller, writes a block, reads it back and
// compares. It puts back what the block held before.
//
//	go run ./examples/hello
//	go run ./examples/hello "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/qpoll/qpoll/examples/internal/demo"
	"github.com/qpoll/qpoll/nvme"

	_ "github.com/qpoll/qpoll/tcp" // trtype:tcp
)

func main() { demo.Main(run) }

func run(args []string, out io.Writer) (err error) {
	address, stop, err := demo.Address(args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return hello(context.Background(), address, out)
}

func hello(ctx context.Context, address string, out io.Writer) error {
	ctrl, err := nvme.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer ctrl.Close(ctx)
	id := ctrl.Identify()
	fmt.Fprintf(out, "%s, serial number %s\n", id.ModelNumber(), id.SerialNumber())

	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "namespace 1: %d blocks of %d bytes\n", ns.Blocks(), ns.BlockSize())

	before := make([]byte, ns.BlockSize())
	if _, err := ns.ReadAt(before, 0); err != nil {
		return err
	}
	block := make([]byte, ns.BlockSize())
	copy(block, "hello, NVMe")
	if _, err := ns.WriteAt(block, 0); err != nil {
		return err
	}
	got := make([]byte, ns.BlockSize())
	if _, err := ns.ReadAt(got, 0); err != nil {
		return err
	}
	fmt.Fprintf(out, "read %q\n", got[:len("hello, NVMe")])

	// The controller compares, too, where it has the command.
	switch err := ns.CompareAt(ctx, block, 0); {
	case errors.Is(err, nvme.ErrUnsupported):
		fmt.Fprintln(out, "no Compare command")
	case err != nil:
		return err
	default:
		fmt.Fprintln(out, "compared")
	}
	_, err = ns.WriteAt(before, 0)
	return err
}
