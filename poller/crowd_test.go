package poller

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/sys"
)

// threads lists the threads of this process.
func threads(t *testing.T) (tids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		must(t, err)
		tids = append(tids, tid)
	}
	return tids
}

// confine lets all threads of this process run on some cores only. Threads may
// end meanwhile.
func confine(t *testing.T, cores []int) {
	t.Helper()
	for _, tid := range threads(t) {
		if err := sys.SetAffinityMask(tid, cores); err != nil && !errors.Is(err, errNoThread) {
			t.Error(err)
		}
	}
}

// All that is there is one core, one processor for the runtime, and two busy
// pollers that want it.
func TestOneCore(t *testing.T) {
	cores, err := AllowedCores()
	must(t, err)
	core := cores[len(cores)-1:]
	confine(t, core)
	procs := runtime.GOMAXPROCS(1)
	defer func() {
		runtime.GOMAXPROCS(procs)
		confine(t, cores)
	}()
	pollers := []*Poller{startPoller(t, Config{}), startPoller(t, Config{})}
	for range 2 {
		for _, p := range pollers {
			if err := p.Call(patience(t), func() {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range pollers {
		before := p.Stats().Passes
		eventually(t, "progress of both pollers", func() bool { return p.Stats().Passes > before })
	}
	for _, p := range pollers {
		must(t, p.Close())
	}
}

func TestCrowded(t *testing.T) {
	var told []int
	var log bytes.Buffer
	p := newPoller(t, Config{
		Name:   "one of many",
		Logger: textLogger(&log),
		Events: &Events{Crowded: func(_ *Poller, busy, procs int) { told = append(told, busy, procs) }},
	})
	deaf := newPoller(t, Config{})
	procs := 3
	c := crowding{procs: func() int { return procs }}
	enter := func(p *Poller) { c.enter(); c.warn(p) }

	enter(p)
	enter(p)
	if told != nil {
		t.Errorf("told %v with a processor to spare", told)
	}
	enter(deaf)
	enter(p)
	enter(p)
	if want := []int{4, 3}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v once", told, want)
	}
	for range 3 {
		c.leave()
	}
	enter(p)
	if want := []int{4, 3, 3, 3}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v after there were fewer", told, want)
	}
	for _, want := range []string{"GOMAXPROCS", `"one of many"`, "busy=4", "gomaxprocs=3"} {
		if n := strings.Count(log.String(), want); n == 0 {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
}

// A busy poller that runs is counted, in a process that has no processor to
// spare.
func TestStartWarnsOfCrowd(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	told := 0
	cfg := Config{Core: anyCore(t), Events: &Events{Crowded: func(p *Poller, busy, procs int) {
		if busy != 1 || procs != 1 {
			t.Errorf("told of %d busy pollers and %d processors, want 1 and 1", busy, procs)
		}
		told++
	}}}
	for _, idle := range []IdleMode{Busy, Adaptive} {
		cfg.Idle = idle
		p := newPoller(t, cfg)
		must(t, p.Start())
		must(t, p.Close())
	}
	if told != 1 {
		t.Errorf("told %d times, want once, of the busy one", told)
	}
}
