package mpath

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

func TestAttributes(t *testing.T) {
	changed := make(chan [2]string, 8)
	cfg := quick()
	cfg.Policy = policy.ServiceTime
	cfg.Events = &Events{Policy: func(_ *Head, from, to string) { changed <- [2]string{from, to} }}
	w := newWorld(t, 2, cfg, func(_ int, k *fakeController) { k.withANA(1) })
	if st := w.write(0, 1).wait(); !st.OK() {
		t.Fatal(st)
	}
	root := w.h.FS()
	must(t, fstest.TestFS(root, "iopolicy", "iopolicies", "delayed_removal_secs", "nvme0c0n1/ana_state", "nvme0c1n1/queue_depth"))
	get := func(name string) string {
		t.Helper()
		b, err := fs.ReadFile(root, name)
		must(t, err)
		return strings.TrimSuffix(string(b), "\n")
	}
	for name, want := range map[string]string{
		"iopolicy": "service-time", "iopolicies": strings.Join(policy.Names(), " "), "delayed_removal_secs": "0",
		"latency_ewma_shift": "3", "latency_batch_timeout": "15000", "nguid": "01" + strings.Repeat("0", 30), "uuid": "", "eui": "",
		"wwid": "eui.01" + strings.Repeat("0", 30), "size": "256",
		"nvme0c0n1/ana_state": "optimized", "nvme0c0n1/ana_grpid": "1", "nvme0c0n1/state": "live", "nvme0c0n1/queue_depth": "0",
		"nvme0c0n1/in_flight_bytes": "0", "nvme0c0n1/relative_throughput": "1", "nvme0c0n1/multipath_failover_count": "0",
		"nvme0c0n1/address": "fake 1", "nvme0c0n1/transport": "fake", "nvme0c0n1/cntlid": "1", "nvme0c0n1/numa_nodes": "-1",
		"nvme0c1n1/numa_nodes": "",
	} {
		if got := get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	eventually(t, "latency", func() bool {
		return strings.HasPrefix(get("nvme0c0n1/latency_stat"), "read 0 0 0\nwrite 1 ") || strings.HasPrefix(get("nvme0c1n1/latency_stat"), "read 0 0 0\nwrite 1 ")
	})
	for name, v := range map[string]string{
		"iopolicy": "numa\n", "delayed_removal_secs": "5", "latency_ewma_shift": "4", "latency_batch_timeout": "100",
		"nvme0c1n1/relative_throughput": "0",
	} {
		must(t, w.h.SetAttribute(name, v))
		if got := get(name); got != strings.TrimSpace(v) && name != "nvme0c1n1/relative_throughput" {
			t.Errorf("%s: %q, want %q", name, got, v)
		}
	}
	if got := get("nvme0c1n1/relative_throughput"); got != "" {
		t.Errorf("%q, though another policy is in force", got)
	}
	if c := <-changed; c != [2]string{"service-time", "numa"} {
		t.Error(c)
	}
	w.on(func() {
		if name, _ := w.ch.set.Policy(); name != "numa" || w.ch.set.Weight(w.h.Paths()[1].slot) != 0 {
			t.Error(name, w.ch.set.Weight(1))
		}
	})
}

func TestAttributeErrors(t *testing.T) {
	w := newWorld(t, 1, nil)
	for _, c := range []struct {
		name, value string
		want        error
	}{
		{"iopolicy", "fastest", policy.ErrUnknown},
		{"iopolicy", "", policy.ErrUnknown},
		{"iopolicies", "numa", ErrAttribute},
		{"delayed_removal_secs", "-1", ErrAttribute},
		{"delayed_removal_secs", "soon", ErrAttribute},
		{"latency_ewma_shift", "0", policy.ErrConfig},
		{"latency_ewma_shift", "17", policy.ErrConfig},
		{"latency_batch_timeout", "0", policy.ErrConfig},
		{"latency_batch_timeout", "99999999999", ErrAttribute},
		{"nvme0c0n1/relative_throughput", "101", policy.ErrWeight},
		{"nvme0c0n1/relative_throughput", "-1", policy.ErrWeight},
		{"nvme0c0n1/relative_throughput", "", ErrAttribute},
		{"nvme0c0n1/ana_state", "optimized", ErrAttribute},
		{"nvme0c7n1/ana_state", "optimized", ErrAttribute},
		{"color", "blue", ErrAttribute},
	} {
		if err := w.h.SetAttribute(c.name, c.value); !errors.Is(err, c.want) {
			t.Errorf("%s = %q: %v, want %v", c.name, c.value, err, c.want)
		}
	}
	if _, err := w.h.Attribute("color"); !errors.Is(err, ErrAttribute) {
		t.Error(err)
	}
	if v, err := w.h.Attribute("nvme0c0n1/ana_state"); err != nil || v != nvme.ANAOptimized.String() {
		t.Error(v, err)
	}
	if _, err := w.h.FS().Open("../etc"); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	if _, err := w.h.FS().Open("nvme0c0n1/color"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestNUMA(t *testing.T) {
	root := fstest.MapFS{
		"devices/system/cpu/cpu3/node1/x":        {},
		"devices/system/node/node1/distance":     {Data: []byte("21 10 31\n")},
		"bus/pci/devices/0000:01:00.0/numa_node": {Data: []byte("2\n")},
	}
	for _, c := range []struct{ from, to, want int }{{1, 1, 10}, {1, 0, 21}, {1, 2, 31}, {1, 3, 20}, {0, 1, 20}, {-1, 0, 20}, {0, -1, 20}} {
		if got := distance(root, c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %d, want %d", c.from, c.to, got, c.want)
		}
	}
	if nodeOfCore(root, 3) != 1 || nodeOfCore(root, 4) != -1 || nodeOfCore(root, -1) != -1 {
		t.Error(nodeOfCore(root, 3), nodeOfCore(root, 4))
	}
	if n, ok := readNumber(root, "bus/pci/devices/0000:01:00.0/numa_node"); n != 2 || !ok {
		t.Error(n, ok)
	}
	if _, ok := readNumber(root, "/bus"); ok {
		t.Error("not a valid path")
	}
}
