package lab

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints the results of one scenario for people, with their ratios to
// those of queue-depth and of upstream's.
func WriteTable(w io.Writer, sc *Scenario, rs []*Result) error {
	fmt.Fprintf(w, "%s: %s\n", sc.Name, sc.Title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\tIOPS\tMiB/s\tmean us\tstddev\tp50\tp99\tp99.9\tmax\tsplit %\t\n")
	for _, r := range rs {
		m := r.Metrics
		fmt.Fprintf(tw, "%s\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t\n", r.Contender,
			m["iops"], m["MiB/s"], m["mean"], m["stddev"], m["p50"], m["p99"], m["p99.9"], m["max"], r.split())
	}
	return tw.Flush()
}

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
