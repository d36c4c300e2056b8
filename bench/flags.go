package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// flagSet is a flag.FlagSet whose errors are one line that says what to type.
type flagSet struct {
	*flag.FlagSet
	command string // as the user types it
	intro   string
	groups  []group
	aliases map[string]string // short name to long
}

// group is a heading of the help and the flags below it.
type group struct {
	title string
	names []string
}

func newFlagSet(command, intro string) *flagSet {
	f := &flagSet{FlagSet: flag.NewFlagSet(command, flag.ContinueOnError), command: command, intro: intro, aliases: map[string]string{}}
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

// heading puts the flags that are defined after it under a title.
func (f *flagSet) heading(title string) { f.groups = append(f.groups, group{title: title}) }

// value defines a flag.
func (f *flagSet) value(v flag.Value, name, usage string) {
	f.Var(v, name, usage)
	last := &f.groups[len(f.groups)-1]
	last.names = append(last.names, name)
}

// alias gives a flag a second name, which the help mentions in passing.
func (f *flagSet) alias(short, long string) {
	f.Var(f.Lookup(long).Value, short, f.Lookup(long).Usage)
	f.aliases[short] = long
}

// given returns the flags that were set, by their long names.
func (f *flagSet) given() map[string]bool {
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) {
		if long, ok := f.aliases[fl.Name]; ok {
			given[long] = true
		} else {
			given[fl.Name] = true
		}
	})
	return given
}

// parse reads the arguments, prints the help on out if they ask for it, and
// refuses what is left over.
func (f *flagSet) parse(args []string, out io.Writer) error {
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.help(out)
		return errHelp
	case err != nil:
		return f.explain(err)
	case f.NArg() > 0:
		rest := f.Arg(0)
		if strings.ContainsAny(rest, ":=") {
			return usagef("%q is no flag: put an address of several words into quotes, as in -target \"trtype:tcp traddr:...\"", rest)
		}
		return usagef("%q is no flag, and there is nothing else to say: flags begin with -", rest)
	}
	return nil
}

// explain turns an error of the flag package into an instruction.
func (f *flagSet) explain(err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		hint := ""
		if near := f.nearest(name); near != "" {
			hint = fmt.Sprintf(", did you mean -%s?", near)
		}
		return usagef("unknown flag -%s%s (%s -h lists them)", name, hint, f.command)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		_, what := flag.UnquoteUsage(f.Lookup(name))
		return usagef("-%s needs a value: %s", name, what)
	}
	if _, rest, ok := strings.Cut(text, " for flag -"); ok {
		name, why, _ := strings.Cut(rest, ": ")
		return usagef("-%s: %s", name, why)
	}
	if _, rest, ok := strings.Cut(text, " for -"); ok { // of boolean flags
		name, why, _ := strings.Cut(rest, ": ")
		return usagef("-%s: %s", name, why)
	}
	return usagef("%s (%s -h lists the flags)", text, f.command)
}

// nearest returns a flag that the user may have meant.
func (f *flagSet) nearest(name string) string {
	best, least := "", 3
	f.VisitAll(func(fl *flag.Flag) {
		if len(fl.Name) < 2 {
			return
		}
		if strings.HasPrefix(fl.Name, name) && least > 0 {
			best, least = fl.Name, 0
		}
		if d := distance(name, fl.Name); d < least {
			best, least = fl.Name, d
		}
	})
	return best
}

// distance is the number of letters to insert, drop or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// help prints what there is.
func (f *flagSet) help(out io.Writer) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", f.intro)
	for _, g := range f.groups {
		fmt.Fprintf(&b, "\n%s\n", g.title)
		for _, name := range g.names {
			f.helpFlag(&b, f.Lookup(name))
		}
	}
	_, _ = out.Write(b.Bytes())
}

func (f *flagSet) helpFlag(b *bytes.Buffer, fl *flag.Flag) {
	arg, usage := flag.UnquoteUsage(fl)
	left := "-" + fl.Name
	for short, long := range f.aliases {
		if long == fl.Name {
			left = "-" + short + ", " + left
		}
	}
	if arg != "" {
		left += " " + arg
	}
	if !slices.Contains([]string{"", "0", "0s", "false"}, fl.DefValue) {
		usage += " (" + fl.DefValue + ")"
	}
	lines := wrap(usage, 55)
	fmt.Fprintf(b, "  %-22s %s\n", left, lines[0])
	for _, line := range lines[1:] {
		fmt.Fprintf(b, "  %-22s %s\n", "", line)
	}
}

// wrap breaks a text into lines of at most width characters, at spaces.
func wrap(s string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
