// Command readerat reads a namespace through the interfaces of package io, as
// if it were a file: here, the SHA-256 of its first 16 MiB.
//
//	go run ./examples/readerat
//	go run ./examples/readerat "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk"
package main

import (
	"context"
	"crypto/sha256"
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
	return hash(context.Background(), address, out)
}

func hash(ctx context.Context, address string, out io.Writer) error {
	ctrl, err := nvme.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer ctrl.Close(ctx)
	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		return err
	}
	// A namespace is an io.ReaderAt. Offsets and lengths have to be multiples
	// of the block size, so whatever reads from it gets a buffer of whole
	// blocks. One command per 1 MiB is cheaper than one per 32 KiB, too.
	section := io.NewSectionReader(ns, 0, min(ns.Size(), 16<<20))
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, onlyReader{section}, make([]byte, 1<<20))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d bytes, SHA-256 %x\n", n, sum.Sum(nil))
	return nil
}

// onlyReader hides io.WriterTo, by which a section reader would choose a buffer
// of its own.
type onlyReader struct{ io.Reader }
