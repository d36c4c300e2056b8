package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// fuzzPackage is a package with fuzz targets.
type fuzzPackage struct {
	Dir     string
	Path    string
	Targets []string
}

// fuzz runs every fuzz target of the module in turn, each for the same time.
//
// It runs the test binaries itself and interrupts them: go test -fuzztime with
// a duration reports a failure when its deadline races with its workers
// (go.dev/issue/75804), which happens on a busy machine.
func fuzz(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	each := flags.Duration("each", 5*time.Second, "time for each target")
	total := flags.Duration("total", 5*time.Minute, "time for all of them together, which shortens -each")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pkgs, n, err := fuzzTargets(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("no fuzz target found")
	}
	budget := min(*each, *total/time.Duration(n))
	work, err := os.MkdirTemp("", "qpoll-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for i, p := range pkgs {
		bin := filepath.Join(work, fmt.Sprintf("%d.test", i))
		if err := command(ctx, ".", "go", "test", "-c", "-fuzz", ".", "-o", bin, p.Path).Run(); err != nil {
			return fmt.Errorf("building %s for fuzzing: %w", p.Path, err)
		}
		for _, target := range p.Targets {
			execs, err := fuzzOne(ctx, bin, p.Dir, target, work, budget)
			if err != nil {
				return fmt.Errorf("%s %s: %w", p.Path, target, err)
			}
			fmt.Printf("ok  \t%s\t%s\t%d execs\n", p.Path, target, execs)
		}
	}
	fmt.Printf("fuzz: %d passed, 0 failed\n", n)
	return nil
}

// command prepares a command that shows its output.
func command(ctx context.Context, dir string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	interruptible(cmd)
	return cmd
}

// fuzzTargets finds the fuzz targets of all packages of the module.
func fuzzTargets(ctx context.Context) (pkgs []fuzzPackage, n int, err error) {
	cmd := command(ctx, ".", "go", "test", "-json", "-list", "^Fuzz", "./...")
	cmd.Stdout = nil
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("listing fuzz targets: %w\n%s", err, out)
	}
	for _, p := range parseList(out) {
		cmd := command(ctx, ".", "go", "list", "-f", "{{.Dir}}", p.Path)
		cmd.Stdout = nil
		dir, err := cmd.Output()
		if err != nil {
			return nil, 0, err
		}
		p.Dir = strings.TrimSpace(string(dir))
		pkgs = append(pkgs, p)
		n += len(p.Targets)
	}
	return pkgs, n, nil
}

// parseList reads the output of go test -json -list.
func parseList(out []byte) []fuzzPackage {
	var pkgs []fuzzPackage
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil || e.Action != "output" {
			continue
		}
		name := strings.TrimSpace(e.Output)
		if !strings.HasPrefix(name, "Fuzz") {
			continue
		}
		if len(pkgs) == 0 || pkgs[len(pkgs)-1].Path != e.Package {
			pkgs = append(pkgs, fuzzPackage{Path: e.Package})
		}
		last := &pkgs[len(pkgs)-1]
		last.Targets = append(last.Targets, name)
	}
	return pkgs
}

// stopDelay bounds how long a target may take to end once interrupted. A
// target that hangs on an input does not.
const stopDelay = 30 * time.Second

// fuzzStart matches the first line that a target writes once it fuzzes: the
// second form is that of a target without any seed.
var fuzzStart = regexp.MustCompile(`now fuzzing|execs: \d`)

// fuzzOne runs one target of a test binary for about d. The time starts with
// the fuzzing, after the build and the run over the corpus.
func fuzzOne(ctx context.Context, bin, dir, target, cache string, d time.Duration) (execs int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := command(ctx, dir, bin, "-test.run", "^$", "-test.fuzz", "^"+target+"$", "-test.fuzzcachedir", filepath.Join(cache, "corpus"))
	cmd.WaitDelay = stopDelay
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var log bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		started := false
		for lines := bufio.NewScanner(io.TeeReader(r, &log)); lines.Scan(); {
			if !started && fuzzStart.MatchString(lines.Text()) {
				started = true
				time.AfterFunc(d, cancel)
			}
		}
		_, _ = io.Copy(&log, r) // after a line too long for the scanner
	}()
	err = cmd.Run()
	_ = w.Close()
	<-read
	if err != nil && !errors.Is(err, context.Canceled) {
		return 0, fmt.Errorf("%w\n%s", err, log.Bytes())
	}
	return fuzzVerdict(log.Bytes())
}

var execsCount = regexp.MustCompile(`execs: (\d+)`)

// fuzzVerdict reads the log of a target that was interrupted.
func fuzzVerdict(log []byte) (execs int, err error) {
	if m := execsCount.FindAllSubmatch(log, -1); m != nil {
		execs, _ = strconv.Atoi(string(m[len(m)-1][1]))
	}
	switch {
	case !bytes.Contains(log, []byte("\nPASS\n")):
		err = errors.New("did not pass")
	case bytes.Contains(log, []byte("--- SKIP")):
		err = errors.New("skipped")
	case bytes.Contains(log, []byte("not built with coverage instrumentation")):
		err = errors.New("without coverage instrumentation")
	case execs == 0:
		err = errors.New("executed nothing")
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, log)
	}
	return execs, err
}
