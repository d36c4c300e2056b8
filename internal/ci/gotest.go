package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// limits are what a run must reach to count.
type limits struct {
	min   int  // tests, or benchmarks
	bench bool // count benchmarks
}

// verdict says why a run that go test itself finds good is not good enough.
func (l limits) verdict(t tally) error {
	n, what := t.Passed, "tests"
	if l.bench {
		n, what = t.Benchmarks, "benchmarks"
	}
	var errs []error
	if t.Failed+t.Broken > 0 {
		errs = append(errs, fmt.Errorf("%d tests and %d packages failed", t.Failed, t.Broken))
	}
	if len(t.Skipped) > 0 {
		errs = append(errs, fmt.Errorf("skipped, which no test may: %s", strings.Join(t.Skipped, ", ")))
	}
	if len(t.Empty) > 0 && !l.bench {
		errs = append(errs, fmt.Errorf("packages with test files, but no tests: %s", strings.Join(t.Empty, ", ")))
	}
	if n < l.min {
		errs = append(errs, fmt.Errorf("only %d %s ran, want at least %d", n, what, l.min))
	}
	return errors.Join(errs...)
}

// goTest runs a go test command with -json added and judges what it did.
func goTest(ctx context.Context, args []string) error {
	var l limits
	flags := flag.NewFlagSet("gotest", flag.ContinueOnError)
	flags.IntVar(&l.min, "min", 1, "least `number` of tests that must pass")
	flags.BoolVar(&l.bench, "bench", false, "count benchmarks instead of tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	argv, err := jsonCommand(flags.Args())
	if err != nil {
		return err
	}
	t, runErr := runGoTest(ctx, argv, os.Stdout)
	if l.bench {
		fmt.Printf("benchmarks: %d passed, %d failed\n", t.Benchmarks, t.Failed)
	} else {
		fmt.Printf("tests: %d passed, %d failed\n", t.Passed, t.Failed)
	}
	return errors.Join(runErr, l.verdict(t))
}

// jsonCommand adds -json to a go test command.
func jsonCommand(argv []string) ([]string, error) {
	if len(argv) < 2 || argv[0] != "go" || argv[1] != "test" {
		return nil, fmt.Errorf("not a go test command: %q", argv)
	}
	return slices.Insert(slices.Clone(argv), 2, "-json"), nil
}

func runGoTest(ctx context.Context, argv []string, w io.Writer) (tally, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	interruptible(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	if err := cmd.Start(); err != nil {
		return tally{}, err
	}
	t, readErr := readEvents(out, w)
	if err := cmd.Wait(); err != nil {
		return t, fmt.Errorf("go test: %w", err)
	}
	return t, readErr
}

// interruptible makes the end of cmd's context an interrupt, which the go
// command and test binaries act on, and only later a kill.
func interruptible(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
}
