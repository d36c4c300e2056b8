package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrUsage says that the arguments of [Main] make no sense; what was wrong has
// been printed.
var ErrUsage = errors.New("bad arguments")

// options are the flags of Main.
type options struct {
	only   string
	policy string
	dir    string
	seed   uint64
	list   bool
	sim    bool
}

// Main runs the lab from a command line: it simulates scenarios and prints
// tables to stdout. Errors in the arguments go to stderr and wrap [ErrUsage];
// -h prints the flags and returns [flag.ErrHelp].
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("lab", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&o.sim, "sim", true, "simulate, in virtual time; the same figures on every machine")
	fs.StringVar(&o.only, "scenario", "", "only the scenarios with one of these in their names, separated by commas")
	fs.StringVar(&o.policy, "policy", "", "only the policies with one of these in their labels, separated by commas")
	fs.StringVar(&o.dir, "dir", "", "write lab.csv, lab.json and a page with plots per scenario to this directory")
	fs.Uint64Var(&o.seed, "seed", 0, "seed of the random numbers; 0 is each scenario's own")
	fs.BoolVar(&o.list, "list", false, "list the scenarios and run none")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("lab: %w: %w", ErrUsage, err)
	}
	scenarios, err := o.choose(fs.Args())
	if err != nil {
		fmt.Fprintln(stderr, err)
		return err
	}
	if o.list {
		for i := range scenarios {
			fmt.Fprintf(stdout, "%-22s %s\n", scenarios[i].Name, scenarios[i].Title)
		}
		return nil
	}
	reports, err := RunAll(ctx, scenarios)
	if err != nil {
		return err
	}
	for _, r := range reports {
		if err := r.WriteText(stdout); err != nil {
			return err
		}
	}
	return o.save(reports)
}

// choose returns the scenarios and contenders that the flags ask for.
func (o *options) choose(rest []string) ([]Scenario, error) {
	if len(rest) > 0 {
		return nil, fmt.Errorf("lab: %w: %q", ErrUsage, rest)
	}
	if !o.sim {
		return nil, fmt.Errorf("lab: %w: -sim=false leaves nothing to do", ErrUsage)
	}
	var chosen []Scenario
	for _, sc := range Scenarios() {
		if !matches(sc.Name, o.only) {
			continue
		}
		if o.seed != 0 {
			sc.Seed = o.seed
		}
		var cs []Contender
		for _, c := range sc.contenders() {
			if matches(c.Label, o.policy) {
				cs = append(cs, c)
			}
		}
		if sc.Contenders = cs; len(cs) > 0 {
			chosen = append(chosen, sc)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("lab: %w: no scenario matches %q with policy %q", ErrUsage, o.only, o.policy)
	}
	return chosen, nil
}

// matches tells whether a name has one of the parts in it; no parts match all.
func matches(name, parts string) bool {
	if parts == "" {
		return true
	}
	for part := range strings.SplitSeq(parts, ",") {
		if part != "" && strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// save writes the files that -dir asks for.
func (o *options) save(reports []*Report) error {
	if o.dir == "" {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	files := map[string]func(io.Writer) error{
		"lab.csv":  func(w io.Writer) error { return WriteCSV(w, reports) },
		"lab.json": func(w io.Writer) error { return WriteJSON(w, reports) },
	}
	for _, r := range reports {
		files[r.Scenario.Name+".html"] = r.WriteHTML
	}
	for name, write := range files {
		if err := saveFile(filepath.Join(o.dir, name), write); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return nil
}

func saveFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
