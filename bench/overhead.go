package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/qpoll/qpoll/bench/internal/overhead"
	"github.com/qpoll/qpoll/poller"
)

const overheadIntro = `Usage: bench overhead [flags]   measure what the driver costs for each I/O

The processor's counter is read around each call that submits or polls. With
no flags that is done on a controller in software that completes at once and
moves no data; on any other the cost is that of the driver, too, as waiting
is left out: passes that find nothing are counted apart.`

// overheadOptions are what the user has chosen for measuring overhead.
type overheadOptions struct {
	options
	depths, batches numbers
}

func (o *overheadOptions) flags() *flagSet {
	f := newFlagSet("bench overhead", overheadIntro)
	o.targetFlags(f)
	f.heading("Load")
	f.value(choice{&o.pattern, patterns[:2]}, "rw", "`pattern`: read or write. Writing destroys what is there")
	f.value(&o.block, "bs", "`size` of an I/O")
	f.value(&o.depths, "depth", "`n`, or several with commas between: I/Os outstanding at most")
	f.value(&o.batches, "batch", "`n`, or several with commas between: I/Os submitted before the pass that sends them off. Those above the depth are left out")
	f.value(&o.time, "time", "`time` to measure each combination for")
	f.value(&o.cores, "core", "`core` to poll on; by default the first that is allowed")
	f.heading("Results")
	f.value(text{&o.jsonFile}, "json", jsonUsage)
	o.ownFlags(f)
	for short, long := range map[string]string{"r": "target", "w": "rw", "o": "bs", "q": "depth", "t": "time", "c": "core"} {
		f.alias(short, long)
	}
	return f
}

// parseOverhead reads the arguments.
func parseOverhead(args []string, stdout io.Writer) (*overheadOptions, error) {
	o := &overheadOptions{
		options: options{
			target: softwareIdeal, nsid: 1, pattern: "read", block: 4096, queues: 1, time: seconds(200 * time.Millisecond),
			backend: backends[0], capacity: 256 << 20, connectTimeout: 5 * time.Second,
		},
		depths: numbers{1, 4, 16, 32, 64, 128, 256}, batches: numbers{1, 8, 32},
	}
	f := o.flags()
	if err := f.parse(args, stdout); err != nil {
		return nil, err
	}
	o.depth = slices.Max(o.depths)
	return o, o.check(f.given())
}

// check refuses what does not go together.
func (o *overheadOptions) check(given map[string]bool) error {
	switch least := slices.Min(o.batches); {
	case len(o.cores) > 1:
		return usagef("-core: there is one queue on one core, not on %d", len(o.cores))
	case least > o.depth:
		return usagef("-batch %d is above all depths: give one that -depth %s has room for", least, &o.depths)
	}
	return o.options.check(given)
}

// overheadRow is the result of one combination. All times are in nanoseconds.
type overheadRow struct {
	Depth    int     `json:"depth"`
	Batch    int     `json:"batch"`
	Submit   float64 `json:"submit_ns"` // per I/O: post_ns and ring_ns
	Post     float64 `json:"post_ns"`   // per I/O
	Ring     float64 `json:"ring_ns"`   // per I/O
	Complete float64 `json:"complete_ns"`
	IdlePoll float64 `json:"idle_poll_ns"` // per pass
	Total    float64 `json:"total_ns"`     // per I/O
	Slices   int     `json:"slices"`       // that the medians are of

	Counts overheadCounts `json:"counts"`
}

// overheadCounts are how often what was done.
type overheadCounts struct {
	Submitted  uint64 `json:"submitted"`
	Batches    uint64 `json:"batches"`
	Rings      uint64 `json:"ring_passes"`
	Rung       uint64 `json:"rung"` // I/Os
	Completing uint64 `json:"completing_passes"`
	Completed  uint64 `json:"completed"` // in these passes
	Mixed      uint64 `json:"mixed_passes"`
	MixedDone  uint64 `json:"completed_in_mixed_passes"`
	Partial    uint64 `json:"partial_passes"`
	Idle       uint64 `json:"idle_passes"`
	Elsewhere  uint64 `json:"completed_elsewhere"`
}

func newOverheadRow(depth, batch int, r *overhead.Result) overheadRow {
	c, n := &r.Cost, &r.Counts
	return overheadRow{
		Depth: depth, Batch: batch, Submit: c.Submit(), Post: c.Post, Ring: c.Ring,
		Complete: c.Complete, IdlePoll: c.IdlePoll, Total: c.Total, Slices: r.Slices,
		Counts: overheadCounts{
			Submitted: n.Posted, Batches: n.PostIntervals, Rings: n.Rings, Rung: n.Rung, Completing: n.Completing,
			Completed: n.Reaped, Mixed: n.Mixed, MixedDone: n.MixedReaped, Partial: n.Partial, Idle: n.Idle, Elsewhere: n.Elsewhere,
		},
	}
}

// overheadDocument is what -json writes.
type overheadDocument struct {
	Reading   float64       `json:"counter_ns"` // what reading the counter costs; it has been taken off
	Rows      []overheadRow `json:"rows"`
	Target    string        `json:"target"`
	BlockSize int           `json:"block_size"`
	RW        string        `json:"rw"`
	BS        uint64        `json:"bs"`
	Time      float64       `json:"time_s"`
	Host      host          `json:"host"`
}

// measureOverhead is the command.
func measureOverhead(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOverhead(args, stdout)
	if err != nil {
		return err
	}
	allowed, err := poller.AllowedCores()
	if err != nil {
		return err
	}
	l, err := o.plan(allowed)
	if err != nil {
		return err
	}
	jsonOut, err := openJSON(o.jsonFile, stdout)
	if err != nil {
		return err
	}
	defer jsonOut.discard()
	if o.jsonFile == "-" {
		stdout = stderr
	}
	defer l.processors()()
	e, err := o.endpoint(&l)
	if err != nil {
		return o.explain(err, nil)
	}
	if e.close != nil {
		defer func() { _ = e.close() }()
	}
	s, err := o.open(ctx, &l, e)
	if err != nil {
		return o.setUpError(ctx, err, s)
	}
	defer s.close()
	d, err := o.measure(ctx, s, &l, stdout)
	if err != nil {
		return o.setUpError(ctx, s.cause(err), s)
	}
	return jsonOut.write(d)
}

// measure measures all combinations.
func (o *overheadOptions) measure(ctx context.Context, s *session, l *layout, out io.Writer) (*overheadDocument, error) {
	q := s.queues[0]
	room := q.QueuePair().Size() - 1
	cfg := overhead.Config{
		Poller: q.QueuePair().Poller(), Queue: q, Source: q.QueuePair(), Bytes: int(o.block),
		Depth: min(o.depth, room), Write: o.pattern == "write", Range: uint64(o.extent),
		Alloc: s.allocator(),
	}
	b, err := overhead.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := o.precondition(ctx, s.ns); err != nil {
		return nil, err
	}
	d := &overheadDocument{
		Reading: b.Reading(), Rows: []overheadRow{}, Target: s.target, BlockSize: s.ns.BlockSize(),
		RW: o.pattern, BS: uint64(o.block), Time: time.Duration(o.time).Seconds(), Host: thisHost(),
	}
	o.introduce(out, s, l, d.Reading)
	for _, depth := range o.depths {
		if depth > room {
			fmt.Fprintf(out, "%5d  is more than the queue takes, which is %d\n", depth, room)
			continue
		}
		for _, batch := range o.batches {
			if batch > depth {
				continue
			}
			r, err := b.Measure(ctx, depth, batch, time.Duration(o.time))
			if err != nil {
				return nil, fmt.Errorf("depth %d, batch %d: %w", depth, batch, err)
			}
			row := newOverheadRow(depth, batch, r)
			row.print(out)
			d.Rows = append(d.Rows, row)
		}
	}
	if len(d.Rows) == 0 {
		return nil, usagef("the queue takes %d I/Os at a time: give -depth less", room)
	}
	fmt.Fprint(out, overheadLegend)
	return d, nil
}

// introduce says what will be measured.
func (o *overheadOptions) introduce(out io.Writer, s *session, l *layout, reading float64) {
	fmt.Fprintf(out, "overhead of %s %s on %s, %v each\n%s\n", &o.block, o.pattern, coreNames(l.load), &o.time, thisHost())
	if s.what != "" {
		fmt.Fprintln(out, s.what)
	}
	for _, note := range s.notes.take() {
		fmt.Fprintln(out, note)
	}
	bytes := size(s.ns.Size())
	fmt.Fprintf(out, "%s, namespace %d, %s in blocks of %d\n", s.ctrl.Address(), s.ns.ID(), &bytes, s.ns.BlockSize())
	if l.shared {
		fmt.Fprintln(out, "target and driver share a core: the figures are not what two cores would give")
	}
	fmt.Fprintf(out, "reading the counter costs %.1f ns, which every figure is without\n\n%s", reading, overheadHead)
}

const overheadHead = `            ns per I/O                             ns    passes that
depth batch   post   ring submit complete total   idle   reap reap I/Os
`

const overheadLegend = `
As many I/Os as the depth are submitted, batch by batch, then the queue is
polled until all have completed, over and over. Figures are medians.

post      the call that submits, Read or Write: checks, tracker, command
ring      the pass that sends a batch off (doorbell, or send), shared by it
submit    both: to be compared with what tools report whose drivers ring in
          the call that submits
complete  the passes that find completions, with the callbacks; those that
          send something off besides count for the total alone
total     all passes but those that find nothing
idle      a pass that finds nothing, each
`

// print writes a line of the table.
func (r *overheadRow) print(out io.Writer) {
	per := float64(r.Counts.Completed) / float64(max(1, r.Counts.Completing))
	fmt.Fprintf(out, "%5d %5d %6.1f %6.1f %6.1f %8.1f %5.1f %6.1f %6s %9.1f\n",
		r.Depth, r.Batch, r.Post, r.Ring, r.Submit, r.Complete, r.Total, r.IdlePoll, rate(float64(r.Counts.Completing)), per)
}

// numbers is a list of numbers from 1 to 65535.
type numbers []int

// Set implements flag.Value.
func (n *numbers) Set(s string) error {
	var list numbers
	for item := range strings.SplitSeq(s, ",") {
		v := 0
		if err := (number{&v, 1, 65535}).Set(item); err != nil {
			return err
		}
		list = append(list, v)
	}
	slices.Sort(list)
	*n = slices.Compact(list)
	return nil
}

// String implements flag.Value.
func (n *numbers) String() string {
	var parts []string
	for _, v := range *n {
		parts = append(parts, fmt.Sprint(v))
	}
	return strings.Join(parts, ",")
}
