// Command ci holds the parts of .ci/run that are more than a line of shell.
//
//	ci gotest [-min N] [-bench] -- COMMAND   run a go test command; fail when it ran fewer than N tests or skipped any
//	ci fuzz [-each D] [-total D]             run every fuzz target of the module for a while
//	ci page-command GATE FILE                print the command that FILE marks as run=GATE
//	ci pages FILE...                         run the commands that the pages mark as run
//	ci iops                                  read the JSON of bench on standard input; fail unless it did I/O
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// A subcommand gets the arguments after its name.
type subcommand func(ctx context.Context, args []string) error

var subcommands = map[string]subcommand{
	"gotest":       goTest,
	"fuzz":         fuzz,
	"page-command": printPageCommand,
	"pages":        runPages,
	"iops":         checkIOPS,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || subcommands[args[0]] == nil {
		return fmt.Errorf("usage: ci gotest|fuzz|page-command|pages|iops [arguments]")
	}
	return subcommands[args[0]](ctx, args[1:])
}
