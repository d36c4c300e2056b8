package lab

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/qpoll/qpoll/mpath/policy"
)

// Report is what came out of a scenario, contender by contender.
type Report struct {
	Scenario *Scenario
	Results  []*Result
}

// Get returns the result of a contender, nil if it did not take part.
func (r *Report) Get(label string) *Result {
	for _, res := range r.Results {
		if res.Contender == label {
			return res
		}
	}
	return nil
}

// Ratio returns by how much a metric of one contender exceeds that of another,
// as a quotient; 0 if either did not take part.
func (r *Report) Ratio(metric, label, base string) float64 {
	a, b := r.Get(label), r.Get(base)
	if a == nil || b == nil || b.Metrics[metric] == 0 {
		return 0
	}
	return a.Metrics[metric] / b.Metrics[metric]
}

// Best returns which of the policies other than expected-delay, as they are
// without being told anything, does best in a metric. Rates are best when high,
// latencies when low.
func (r *Report) Best(metric string) *Result {
	var best *Result
	high := metric == "iops" || metric == "MiB/s"
	for _, c := range Six() {
		res := r.Get(c.Label)
		if res == nil || c.Policy == policy.ExpectedDelay {
			continue
		}
		if best == nil || (res.Metrics[metric] > best.Metrics[metric]) == high {
			best = res
		}
	}
	return best
}

// base returns the contender that ratios to upstream's figures are taken
// against: queue-depth where upstream has it, else the first.
func (r *Report) base(metric string) (Figure, bool) {
	var first Figure
	found := false
	for _, f := range r.Scenario.Figures {
		if f.Metric != metric {
			continue
		}
		if f.Label == policy.QueueDepth {
			return f, true
		}
		if !found {
			first, found = f, true
		}
	}
	return first, found
}

// WriteText prints the results of a scenario for people, and how they relate to
// upstream's figures: both as multiples of queue-depth's, since the model's
// machine is not upstream's.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", r.Scenario.Name, r.Scenario.Title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\tIOPS\tMiB/s\tmean us\tstddev\tp50\tp99\tp99.9\tmax\tper path %\t\n")
	for _, res := range r.Results {
		m := res.Metrics
		fmt.Fprintf(tw, "%s\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t\n", res.Contender,
			m["iops"], m["MiB/s"], m["mean"], m["stddev"], m["p50"], m["p99"], m["p99.9"], m["max"], res.split())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if err := r.writeFigures(w); err != nil {
		return err
	}
	if ed := r.Get(policy.ExpectedDelay); ed != nil {
		fmt.Fprint(w, "  expected-delay to the best of the other five:")
		for _, metric := range []string{"MiB/s", "p99.9"} {
			if best := r.Best(metric); best != nil {
				fmt.Fprintf(w, "  %s %.3f (%s)", metric, r.Ratio(metric, ed.Contender, best.Contender), best.Contender)
			}
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// writeFigures prints upstream's figures beside those of the run.
func (r *Report) writeFigures(w io.Writer) error {
	if len(r.Scenario.Figures) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "  against upstream\tmetric\tupstream\there\tupstream's ratio\there\t\n")
	for _, f := range r.Scenario.Figures {
		base, ok := r.base(f.Metric)
		res := r.Get(f.Label)
		if !ok || res == nil {
			continue
		}
		fmt.Fprintf(tw, "  %s\t%s\t%.4g\t%.4g\t%.2f\t%.2f\t\n", f.Label, f.Metric, f.Value, res.Metrics[f.Metric],
			f.Value/base.Value, r.Ratio(f.Metric, f.Label, base.Label))
	}
	return tw.Flush()
}

// split says in percent how the I/Os were spread over the paths.
func (r *Result) split() string {
	var sum int64
	for _, n := range r.Split {
		sum += n
	}
	text := ""
	for i, n := range r.Split {
		if i > 0 {
			text += ":"
		}
		text += fmt.Sprintf("%.3g", 100*float64(n)/float64(max(sum, 1)))
	}
	return text
}
