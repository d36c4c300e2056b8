package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// An event is a line of go test -json; see "go doc test2json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A tally is what a run of go test did.
type tally struct {
	Passed     int // tests, subtests, examples and fuzz seeds
	Failed     int
	Benchmarks int      // lines with a result
	Skipped    []string // package and test
	Empty      []string // packages with test files that did nothing
	Packages   int      // that passed or failed
	Broken     int      // packages that failed
}

// pkgRun is the part of a run that belongs to one package.
type pkgRun struct {
	output  []event
	outcome map[string]string // action by test
	done    int               // tests that passed, or benchmarks
}

// readEvents reads a run of go test -json to its end. It prints a line for
// each package that passed, and for one that failed the output of the tests
// that did not pass.
func readEvents(r io.Reader, w io.Writer) (tally, error) {
	var t tally
	runs := make(map[string]*pkgRun)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(w, "%s", line)
			} else {
				p := runs[e.Package]
				if p == nil {
					p = &pkgRun{outcome: make(map[string]string)}
					runs[e.Package] = p
				}
				t.add(e, p, w)
			}
		}
		if err == io.EOF {
			return t, nil
		} else if err != nil {
			return t, err
		}
	}
}

func (t *tally) add(e event, p *pkgRun, w io.Writer) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		p.output = append(p.output, e)
		if strings.HasPrefix(e.Test, "Benchmark") && strings.Contains(e.Output, " ns/op") {
			t.Benchmarks++
			p.done++
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e, p, w)
		} else {
			t.endTest(e, p)
		}
	}
}

func (t *tally) endTest(e event, p *pkgRun) {
	p.outcome[e.Test] = e.Action
	switch e.Action {
	case "pass":
		t.Passed++
		p.done++
	case "fail":
		t.Failed++
	case "skip":
		t.Skipped = append(t.Skipped, e.Package+" "+e.Test)
	}
}

// endPackage prints what a package did. A package that "skips" has no test
// files.
func (t *tally) endPackage(e event, p *pkgRun, w io.Writer) {
	switch e.Action {
	case "pass":
		t.Packages++
		if p.done == 0 {
			t.Empty = append(t.Empty, e.Package)
		}
		for _, o := range p.output {
			if o.Test == "" && strings.HasPrefix(o.Output, "ok ") {
				fmt.Fprintf(w, "%s\t%d passed\n", strings.TrimSpace(o.Output), p.done)
			}
		}
	case "fail":
		t.Packages++
		t.Broken++
		for _, o := range p.output {
			if p.outcome[o.Test] != "pass" {
				fmt.Fprint(w, o.Output)
			}
		}
	}
	p.output = nil
}
