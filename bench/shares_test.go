package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// stack makes a sample of functions, innermost first. A function after "+" was
// inlined into the one that follows it.
func stack(p *profile.Profile, n int64, poller string, names ...string) {
	s := &profile.Sample{Value: []int64{n, n * 10_000_000}}
	if poller != "" {
		s.Label = map[string][]string{"poller": {poller}}
	}
	var loc *profile.Location
	for _, name := range names {
		name, inlined := strings.CutPrefix(name, "+")
		f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
		p.Function = append(p.Function, f)
		if loc == nil {
			loc = &profile.Location{ID: uint64(len(p.Location) + 1)}
			p.Location = append(p.Location, loc)
			s.Location = append(s.Location, loc)
		}
		loc.Line = append(loc.Line, profile.Line{Function: f})
		if !inlined {
			loc = nil
		}
	}
	p.Sample = append(p.Sample, s)
}

func TestShares(t *testing.T) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10_000_000,
	}
	const conn = module + "tcp.(*conn).Poll"
	stack(p, 50, "bench/0", "internal/runtime/syscall/linux.Syscall6", module+"internal/sys.Sendmsg", conn)
	stack(p, 20, "bench/0", "internal/runtime/syscall/linux.Syscall6", module+"internal/sys.Recv", conn)
	stack(p, 10, "bench/0", "runtime.memmove", conn)
	stack(p, 15, "bench/0", "+"+module+"tcp/pdu.(*CapsuleCmd).Encode", conn)
	stack(p, 3, "bench/0", module+"nvme.(*QueuePair).take", conn)
	stack(p, 2, "bench/0", "runtime.asyncPreempt", module+"bench/internal/load.completed", conn)
	stack(p, 60, "target/1", module+"tcp/target.(*worker).Poll")
	stack(p, 40, "target/1", module+"tcp/target/backend.(*memoryChannel).Submit", module+"tcp/target.(*worker).Poll")
	stack(p, 1, "", "runtime.mcall")
	stack(p, 1, "", "main.main")

	var raw, out bytes.Buffer
	if err := p.Write(&raw); err != nil {
		t.Fatal(err)
	}
	if err := printShares(&out, raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	const want = `profile  poller bench/0: 49.5 % of 202 samples
   50.0 %  system call: send
   20.0 %  system call: receive
   15.0 %  NVMe/TCP: PDU codec
   10.0 %  copies of data
    3.0 %  NVMe: queue pair and trackers
    2.0 %  bench: jobs and histogram
profile  poller target/1: 49.5 % of 202 samples
   60.0 %  target: connections and commands
   40.0 %  target: backend
profile  other threads: 1.0 % of 202 samples
   50.0 %  Go runtime and others
   50.0 %  bench: jobs and histogram
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestSharesOfNothing(t *testing.T) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
	}
	var raw, out bytes.Buffer
	if err := p.Write(&raw); err != nil {
		t.Fatal(err)
	}
	if err := printShares(&out, raw.Bytes()); err != nil || !strings.Contains(out.String(), "no samples") {
		t.Errorf("%v, %q", err, &out)
	}
	if err := printShares(&out, []byte("no profile")); err == nil {
		t.Error("no error for what is no profile")
	}
}
