// Command bench measures IOPS and latency of NVMe namespaces, and writes
// profiles for go tool pprof. Without arguments it starts a target of its own
// and reads from that, so that nothing else is needed:
//
//	go run ./bench
//	go run ./bench -target "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk"
//	go run ./bench -target pcietest
//	go run ./bench -target pcie:0000:01:00.0
//	go run ./bench overhead
//	go run ./bench pci list
//	go run ./bench target -listen 0.0.0.0:4420
//	go run ./bench target -vfio-user /run/disk0
//
// The flag -h lists what can be chosen. The exit status is 0 if all went well,
// 2 if the arguments make no sense, 130 after Ctrl-C, and 1 otherwise: the
// target was not reached or was lost, or I/Os failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(interruptible(os.Args[1:], os.Stdout, os.Stderr)) }

// interruptible is run until a signal comes. A second one ends the process at
// once.
func interruptible(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, args, stdout, stderr)
}

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT
)

// run is main with all that it touches in view.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := measure
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "run":
		case "target":
			command = serve
		case "overhead":
			command = measureOverhead
		case "pci":
			command = pci
		case "help":
			args[0] = "-h"
			args = append([]string{""}, args...)
		default:
			return report(stderr, usagef("unknown command %q: it is target, overhead, pci, or none to measure; flags begin with -", args[0]))
		}
		args = args[1:]
	}
	return report(stderr, command(ctx, args, stdout, stderr))
}

// report prints an error and returns the exit status that it stands for.
func report(stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, errHelp) {
		return exitOK
	}
	if !errors.Is(err, errTold) {
		fmt.Fprintf(stderr, "bench: %v\n", err)
	}
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	return exitFailed
}

var (
	// errHelp means that help was asked for, and given.
	errHelp = errors.New("help")
	// errTold means that what went wrong was printed already.
	errTold = errors.New("I/Os failed")
	// errInterrupted means that a signal ended the run.
	errInterrupted = errors.New("interrupted")
)

// usageError is an error in the arguments.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
