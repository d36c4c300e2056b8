package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie/pcietest"
)

// overheadJSON runs "bench overhead" for its document.
func overheadJSON(t *testing.T, args ...string) (d overheadDocument, human string) {
	t.Helper()
	var out, errs strings.Builder
	core := (&coreList{firstCore(t)}).String()
	args = append([]string{"overhead", "-core", core, "-time", "5ms", "-json", "-"}, args...)
	if code := run(t.Context(), args, &out, &errs); code != exitOK {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	decoder := json.NewDecoder(strings.NewReader(out.String()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil || decoder.More() {
		t.Fatalf("%v in %s", err, &out)
	}
	return d, errs.String()
}

// checkRow holds figures against each other that must agree.
func checkRow(t *testing.T, r *overheadRow) {
	t.Helper()
	c := &r.Counts
	if c.Submitted != c.Batches*uint64(r.Batch) || c.Rings+c.Mixed != c.Batches || c.Rung != c.Rings*uint64(r.Batch) {
		t.Errorf("submitted: %+v", r)
	}
	if out := int64(c.Submitted) - int64(c.Completed+c.MixedDone+c.Elsewhere); out > int64(r.Depth) || -out > int64(r.Depth) {
		t.Errorf("%d I/Os missing: %+v", out, r)
	}
	if c.Completed == 0 || c.Completing == 0 || c.Completing > c.Completed || c.Mixed > c.MixedDone || r.Slices < 1 {
		t.Errorf("completed: %+v", r)
	}
	if r.Submit != r.Post+r.Ring || r.Post < 0 || r.Ring < 0 || r.Complete < 0 || r.Total < 0 || r.IdlePoll < 0 {
		t.Errorf("figures: %+v", r)
	}
}

func TestOverhead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "socket")
	address, end := serving(t, "-vfio-user", dir)
	defer func() {
		if rest, code := end(); code != exitOK || !strings.Contains(rest, " 0 errors") {
			t.Errorf("exit status %d, %s", code, rest)
		}
	}()
	core := (&coreList{firstCore(t)}).String()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"-target-cores", core, "-size", "1m"}, []string{"moves no data", "share a core"}},
		{[]string{"-target", software, "-rw", "write", "-bs", "512", "-target-cores", core, "-size", "1m"}, []string{"kind memory"}},
		{[]string{"-target", embedded, "-backend", "null", "-target-cores", core}, []string{"embedded target"}},
		{[]string{"-target", address, "-range", "8k"}, []string{"cntrl"}},
		{[]string{"-target", socketPrefix + dir, "-rw", "write"}, []string{"cntrl"}},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			d, human := overheadJSON(t, append([]string{"-depth", "1,8,32", "-batch", "1,8"}, tt.args...)...)
			for _, want := range append(tt.want, "reading the counter costs", "depth batch", "complete", "doorbell") {
				if !strings.Contains(human, want) {
					t.Errorf("no %q in %s", want, human)
				}
			}
			var rows [][2]int
			for i := range d.Rows {
				checkRow(t, &d.Rows[i])
				rows = append(rows, [2]int{d.Rows[i].Depth, d.Rows[i].Batch})
			}
			if want := [][2]int{{1, 1}, {8, 1}, {8, 8}, {32, 1}, {32, 8}}; !slices.Equal(rows, want) {
				t.Errorf("rows %v, want %v", rows, want)
			}
			if d.Reading <= 0 || d.BlockSize != 512 || d.Target == "" || d.Time != 0.005 || d.Host.CPUs == 0 {
				t.Errorf("document %+v", d)
			}
		})
	}
}

// A depth that the queue does not take is said to be left out.
func TestOverheadDepth(t *testing.T) {
	_, target := serveDevice(t, pcietest.Config{QueueEntries: 16})
	d, human := overheadJSON(t, "-target", target, "-depth", "15,16", "-batch", "4")
	if len(d.Rows) != 1 || d.Rows[0].Depth != 15 || !strings.Contains(human, "16  is more than the queue takes, which is 15") {
		t.Errorf("rows %+v\n%s", d.Rows, human)
	}
	checkRow(t, &d.Rows[0])
	if d.Rows[0].Counts.Submitted == 0 {
		t.Errorf("rows %+v", d.Rows)
	}
}

func TestOverheadErrors(t *testing.T) {
	d, target := serveDevice(t, pcietest.Config{QueueEntries: 16, Namespaces: []pcietest.NamespaceConfig{{BlockSize: 4096, Size: 1 << 20}}})
	d.Inject(pcietest.Rule{Action: pcietest.Fail, Status: nvme.StatusUnrecoveredReadError, Match: pcietest.Opcode(nvme.OpRead, false)})
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"-depth 0", exitUsage, []string{"-depth", "1 to 65535"}},
		{"-depth 1,x", exitUsage, []string{"-depth", "whole number"}},
		{"-depth 4 -batch 8", exitUsage, []string{"-batch 8", "-depth 4"}},
		{"-core 0,1", exitUsage, []string{"-core", "one queue"}},
		{"-rw randread", exitUsage, []string{"-rw", "read or write"}},
		{"-time 0", exitUsage, []string{"-time"}},
		{"-target pcie:x", exitUsage, []string{"pcie:0000:01:00.0"}},
		{"-dept 4", exitUsage, []string{"-depth", "bench overhead -h"}},
		{"-target " + target + " -backend null", exitUsage, []string{"-backend"}},
		{"-target " + target + " -depth 16 -batch 1", exitUsage, []string{"takes 15", "-depth"}},
		{"-target " + target + " -bs 512", exitFailed, []string{"-bs a multiple of 4096"}},
		{"-target " + target + " -nsid 2", exitFailed, []string{"-nsid 1"}},
		{"-target " + target + " -depth 2 -batch 1", exitFailed, []string{"depth 2, batch 1", "Unrecovered Read Error"}},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"overhead", "-time", "1ms"}, strings.Fields(tt.args)...), &out, &errs)
		if code != tt.code {
			t.Errorf("%s: exit status %d, want %d", tt.args, code, tt.code)
		}
		checkLine(t, errs.String(), tt.want)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"overhead", "-h"}, &out, &errs); code != exitOK || !strings.Contains(out.String(), "-batch n") {
		t.Errorf("exit status %d, %s", code, &out)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 || strings.Contains(line, "`") {
			t.Errorf("line %q", line)
		}
	}
}

// A controller that goes is reported as that.
func TestOverheadLost(t *testing.T) {
	d, target := serveDevice(t, pcietest.Config{})
	go func() {
		for d.Stats().Reads < 100 {
			time.Sleep(time.Millisecond)
		}
		d.Remove()
	}()
	var out, errs strings.Builder
	code := run(t.Context(), []string{"overhead", "-target", target, "-time", "1h", "-depth", "4", "-batch", "1"}, &out, &errs)
	if code != exitFailed {
		t.Errorf("exit status %d", code)
	}
	checkLine(t, errs.String(), []string{"depth 4, batch 1", "the controller was lost"})
}
