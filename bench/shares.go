package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// module is the import path that our own functions begin with.
const module = "github.com/qpoll/qpoll/"

// A stage is a part of the path of an I/O, or of what surrounds it. A sample
// belongs to the first of its functions, from the innermost one out, that a
// rule names.
type rule struct{ prefix, stage string }

var rules = []rule{
	{"runtime.memmove", "copies of data"},
	{"runtime.memclr", "copies of data"},
	{"hash/crc32.", "digests"},
	{module + "internal/sys.Send", "system call: send"},
	{module + "internal/sys.Recv", "system call: receive"},
	{module + "internal/sys.Epoll", "system calls: wait"},
	{module + "internal/sys.Ppoll", "system calls: wait"},
	{module + "internal/sys.", "system calls: others"},
	{module + "internal/tsc.", "clock"},
	{module + "internal/hist.", "bench: jobs and histogram"},
	{module + "bench", "bench: jobs and histogram"},
	{"main.", "bench: jobs and histogram"},
	{module + "tcp/pdu.", "NVMe/TCP: PDU codec"},
	{module + "tcp/target/backend.", "target: backend"},
	{module + "tcp/target.", "target: connections and commands"},
	{module + "tcp.", "NVMe/TCP: connection"},
	{module + "pcie/pcietest.", "software controller"},
	{module + "pcie/vfiouser.", "vfio-user: messages"},
	{module + "pcie.", "PCIe: queues, doorbells, addresses"},
	{module + "internal/mmio.", "PCIe: queues, doorbells, addresses"},
	{module + "nvme.", "NVMe: queue pair and trackers"},
	{module + "poller.", "poller: loop, timers, mailbox"},
}

const otherStage = "Go runtime and others"

// share is the samples of one stage on one poller.
type share struct {
	thread, stage string
	count         int64
}

// printShares prints where the samples of a CPU profile fell, poller by
// poller.
func printShares(out io.Writer, raw []byte) error {
	p, err := profile.Parse(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	list, total := shares(p)
	if total == 0 {
		fmt.Fprintln(out, "profile  no samples: give -time more")
		return nil
	}
	thread := ""
	for _, s := range list {
		if s.thread != thread {
			thread = s.thread
			fmt.Fprintf(out, "profile  %s: %.1f %% of %d samples\n", thread, 100*float64(threadTotal(list, thread))/float64(total), total)
		}
		fmt.Fprintf(out, "  %5.1f %%  %s\n", 100*float64(s.count)/float64(threadTotal(list, thread)), s.stage)
	}
	return nil
}

func threadTotal(list []share, thread string) (n int64) {
	for _, s := range list {
		if s.thread == thread {
			n += s.count
		}
	}
	return n
}

// shares sorts the samples into stages: threads by name, pollers first, and
// the stages of each by their weight.
func shares(p *profile.Profile) (list []share, total int64) {
	counts := map[share]int64{}
	for _, s := range p.Sample {
		if len(s.Value) == 0 {
			continue
		}
		thread := noPoller
		if names := s.Label["poller"]; len(names) > 0 {
			thread = "poller " + names[0]
		}
		counts[share{thread: thread, stage: stageOf(s)}] += s.Value[0]
		total += s.Value[0]
	}
	for s, n := range counts {
		s.count = n
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b share) int {
		return cmp.Or(
			cmp.Compare(b2i(a.thread == noPoller), b2i(b.thread == noPoller)), cmp.Compare(a.thread, b.thread),
			cmp.Compare(b.count, a.count), cmp.Compare(a.stage, b.stage))
	})
	return list, total
}

const noPoller = "other threads"

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func stageOf(s *profile.Sample) string {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			if line.Function == nil {
				continue
			}
			if stage := stageOfFunction(line.Function.Name); stage != "" {
				return stage
			}
		}
	}
	return otherStage
}

func stageOfFunction(name string) string {
	for _, r := range rules {
		if strings.HasPrefix(name, r.prefix) {
			return r.stage
		}
	}
	return ""
}
