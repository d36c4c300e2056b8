package load

import (
	"errors"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/nvme"
)

func newFake() *fakeQueue { return &fakeQueue{blockSize: 512, blocks: 1000, depth: 64} }

func start(t testing.TB, q *fakeQueue, wl Workload) (*worker, *testClock) {
	t.Helper()
	if err := wl.check(); err != nil {
		t.Fatal(err)
	}
	w, err := newWorker(q, &wl, 0)
	if err != nil {
		t.Fatal(err)
	}
	clock := &testClock{step: 10}
	w.clock = clock.read
	w.begin()
	return w, clock
}

// Every slot to the end of the namespace, and nothing beyond, is reached, also
// where the size of an I/O does not divide that of the namespace.
func TestPositions(t *testing.T) {
	for _, tt := range []struct {
		name        string
		wl          Workload
		blocks      uint64
		first, last uint64 // LBAs
		order       []uint64
	}{
		{"random", Workload{Bytes: 4096, Random: true}, 80, 0, 72, nil},
		{"odd end", Workload{Bytes: 4096, Random: true}, 87, 0, 72, nil},
		{"whole", Workload{Bytes: 4096, Random: true}, 8, 0, 0, nil},
		{"range", Workload{Bytes: 1024, Random: true, Range: 4096}, 1000, 0, 6, nil},
		{"sequential wraps", Workload{Bytes: 1024}, 7, 0, 4, []uint64{0, 2, 4, 0, 2, 4, 0}},
		{"sequential range", Workload{Bytes: 512, Range: 1024}, 7, 0, 1, []uint64{0, 1, 0, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := map[uint64]int{}
			var order []uint64
			q := newFake()
			q.blocks = tt.blocks
			tt.wl.Jobs, tt.wl.ReadPercent = 4, 100
			q.seen = func(i io) {
				if i.op != read || int(i.blocks)*512 != tt.wl.Bytes || len(i.buf) != tt.wl.Bytes {
					t.Fatalf("I/O %d of %d blocks, buffer of %d bytes", i.op, i.blocks, len(i.buf))
				}
				seen[i.lba]++
				order = append(order, i.lba)
			}
			start(t, q, tt.wl)
			for range 2000 {
				q.complete(0)
			}
			step := uint64(tt.wl.Bytes / 512)
			for lba := tt.first; lba <= tt.last; lba += step {
				if seen[lba] == 0 {
					t.Errorf("LBA %d was never reached", lba)
				}
				delete(seen, lba)
			}
			if len(seen) != 0 {
				t.Errorf("beyond or off the slots: %v", seen)
			}
			if !slices.Equal(order[:len(tt.order)], tt.order) {
				t.Errorf("order %v, want %v", order[:len(tt.order)], tt.order)
			}
		})
	}
}

func TestMix(t *testing.T) {
	for percent, want := range map[int]int{0: 0, 1: 100, 30: 3000, 50: 5000, 99: 9900, 100: 10000} {
		q := newFake()
		reads, writes := 0, 0
		q.seen = func(i io) {
			if i.op == read {
				reads++
			} else {
				writes++
			}
		}
		start(t, q, Workload{Bytes: 512, Random: true, ReadPercent: percent, Jobs: 1, Seed: 7})
		for range 9999 {
			q.complete(0)
		}
		off, most := max(reads-want, want-reads), 300
		if percent%100 == 0 {
			most = 0
		}
		if off > most || reads+writes != 10000 {
			t.Errorf("%d %%: %d reads, %d writes", percent, reads, writes)
		}
	}
}

func TestBuffers(t *testing.T) {
	q := newFake()
	start(t, q, Workload{Bytes: 1024, Jobs: 16})
	used := map[*byte]bool{}
	for _, i := range q.held {
		used[&i.buf[0]] = true
		if slices.Contains(i.buf, 0) || cap(i.buf) != 1024 {
			t.Fatalf("buffer has a zero byte, or capacity %d", cap(i.buf))
		}
	}
	if len(used) != 16 {
		t.Errorf("%d buffers for 16 jobs", len(used))
	}
}

// The window holds what completes from its first nanosecond to its last.
func TestWindow(t *testing.T) {
	q := newFake()
	w, clock := start(t, q, Workload{Bytes: 512, Random: true, ReadPercent: 100, Jobs: 2})
	ended := 0
	w.finished = func() { ended++ }
	clock.now, clock.step = 0, 0
	w.measure(1000, 2000)
	at := func(ns int64) { clock.now = ns; q.complete(0) }
	for _, ns := range []int64{998, 999, 1000, 1001, 1500, 1998, 1999} {
		at(ns)
	}
	if w.ios != 5 {
		t.Errorf("%d I/Os in the window, want 5", w.ios)
	}
	if ended != 0 || w.outstanding != 2 {
		t.Errorf("%d outstanding within the window, want 2", w.outstanding)
	}
	at(2000)
	at(2001)
	if ended != 1 || w.outstanding != 0 || len(q.held) != 0 {
		t.Errorf("after the window: ended %d times, %d outstanding", ended, w.outstanding)
	}
	h := w.latency[read]
	if w.ios != 5 || h.Count() != 5 || w.elapsed(1<<40) != 1000 {
		t.Errorf("%d I/Os, %d latencies, %d ns", w.ios, h.Count(), w.elapsed(1<<40))
	}
	if h.Sum() != (1000-998)+(1001-999)+(1500-1000)+(1998-1001)+(1999-1500) {
		t.Errorf("sum of latencies %d", h.Sum())
	}
}

func TestStop(t *testing.T) {
	for _, tt := range []struct{ at, elapsed int64 }{{500, 0}, {1500, 500}, {3000, 1000}} {
		q := newFake()
		w, clock := start(t, q, Workload{Bytes: 512, Jobs: 3})
		ended := 0
		w.finished = func() { ended++ }
		clock.now, clock.step = tt.at, 0
		w.measure(1000, 2000)
		w.stop()
		for len(q.held) > 0 {
			q.complete(0)
		}
		if ended != 1 || w.ios != 0 || w.elapsed(tt.at) != tt.elapsed {
			t.Errorf("stopped at %d: ended %d times, %d I/Os, %d ns, want %d", tt.at, ended, w.ios, w.elapsed(tt.at), tt.elapsed)
		}
	}
}

// With more jobs than the queue takes, each gets its turn, and latencies count
// from when the job wanted to go.
func TestExcessJobs(t *testing.T) {
	q := newFake()
	q.depth = 3
	var order []*job
	q.seen = func(i io) { order = append(order, i.arg.(*job)) }
	w, clock := start(t, q, Workload{Bytes: 512, Random: true, ReadPercent: 100, Jobs: 8})
	clock.now, clock.step = 0, 0
	w.measure(0, 1<<40)
	for range 80 - 3 {
		if len(q.held) != 3 || w.outstanding != 3 {
			t.Fatalf("%d of 3 outstanding", w.outstanding)
		}
		clock.now += 100
		q.complete(0)
	}
	for i, j := range order {
		if j != &w.jobs[i%8] {
			t.Fatalf("I/O %d is not that of job %d", i, i%8)
		}
	}
	// Little's law: at one completion per 100 ns, 8 jobs wait 800 ns each.
	if last := w.latency[read].Quantiles(0.5)[0]; last != 800 {
		t.Errorf("median latency %d, want 800", last)
	}
	w.until = 0
	ended := false
	w.finished = func() { ended = true }
	for len(q.held) > 0 {
		q.complete(0)
	}
	if !ended || w.active != 0 {
		t.Errorf("%d jobs did not end", w.active)
	}
}

func TestFaults(t *testing.T) {
	q := newFake()
	w, clock := start(t, q, Workload{Bytes: 512, Jobs: 4})
	clock.step = 1
	w.measure(0, 1<<40)
	for i := range 100 {
		st := nvme.Status(0)
		switch {
		case i%10 == 3:
			st = nvme.StatusWriteFault | nvme.StatusDNR
		case i%20 == 5:
			st = nvme.StatusLBAOutOfRange
		}
		q.complete(st)
	}
	f := Faults{}
	f.add(&w.faults)
	want := []StatusCount{{nvme.StatusWriteFault, 10}, {nvme.StatusLBAOutOfRange, 5}}
	if f.Total != 15 || f.Lost != 0 || !slices.Equal(f.ByStatus, want) {
		t.Errorf("faults %+v", f)
	}
	if len(f.First) != maxFirst || f.First[0].Op != nvme.OpWrite || !f.First[0].Status.DNR() {
		t.Errorf("first faults %+v", f.First)
	}
	if w.ios != 85 || w.latency[write].Count() != 85 {
		t.Errorf("%d good I/Os, want 85", w.ios)
	}
	f.add(&w.faults)
	if f.Total != 30 || len(f.First) != maxFirst || f.ByStatus[0].Count != 20 {
		t.Errorf("two workers: %+v", f)
	}
}

func TestManyStatuses(t *testing.T) {
	var a, b Faults
	for i := range 2 * maxStatuses {
		a.count(nvme.Status(i+1), 1)
	}
	b.add(&a)
	if b.Total != 2*maxStatuses || len(b.ByStatus) != maxStatuses {
		t.Errorf("%d faults, %d statuses", b.Total, len(b.ByStatus))
	}
}

// When the controller goes, what it had is lost, and nothing more is asked of
// it; the results are those up to then.
func TestLoss(t *testing.T) {
	q := newFake()
	q.depth = 4
	w, clock := start(t, q, Workload{Bytes: 512, Jobs: 6})
	ended := 0
	w.finished = func() { ended++ }
	clock.now, clock.step = 0, 0
	w.measure(0, 1000)
	clock.now = 100
	q.complete(0)
	clock.now = 250
	submitted := 0
	q.seen = func(io) { submitted++ }
	for len(q.held) > 0 {
		q.complete(nvme.StatusCommandAbortedByHost)
		clock.now++
	}
	if submitted != 0 || ended != 1 || w.active != 0 || w.faults.Lost != 4 {
		t.Errorf("%d submitted after the loss, ended %d times, %d lost", submitted, ended, w.faults.Lost)
	}
	if got := w.elapsed(clock.now); got != 250 {
		t.Errorf("the window was open for %d ns, want 250", got)
	}
}

func TestRefused(t *testing.T) {
	q := newFake()
	w, clock := start(t, q, Workload{Bytes: 512, Jobs: 2})
	ended := 0
	w.finished = func() { ended++ }
	clock.now, clock.step = 0, 0
	w.measure(0, 1000)
	q.err = errors.New("closed")
	clock.now = 10
	q.complete(0)
	clock.now = 20
	q.complete(0)
	if ended != 1 || w.err != q.err || w.ios != 2 || w.elapsed(30) != 10 {
		t.Errorf("ended %d times, error %v, %d I/Os, %d ns", ended, w.err, w.ios, w.elapsed(30))
	}
	// A queue that is full with nothing of ours in it will never change.
	q = newFake()
	q.depth = 0
	if w, _ := start(t, q, Workload{Bytes: 512, Jobs: 3}); w.active != 0 || !errors.Is(w.err, nvme.ErrQueueFull) {
		t.Errorf("%d jobs active on a queue without room, error %v", w.active, w.err)
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		wl   Workload
		want error
	}{
		{Workload{Bytes: 4096}, nil},
		{Workload{Bytes: 512 * 1000}, nil},
		{Workload{Bytes: 512 * 1001}, ErrRange},
		{Workload{Bytes: 1000}, ErrBlockSize},
		{Workload{Bytes: 4096, Range: 512 * 1000}, nil},
		{Workload{Bytes: 4096, Range: 512*1000 + 1}, ErrRange},
		{Workload{Bytes: 4096, Range: 4095}, ErrRange},
	} {
		tt.wl.Jobs = 1
		if _, err := newWorker(newFake(), &tt.wl, 0); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.wl, err, tt.want)
		}
	}
	for _, wl := range []Workload{
		{Bytes: 512, Jobs: 0}, {Bytes: 0, Jobs: 1}, {Bytes: 512, Jobs: 1, ReadPercent: 101},
		{Bytes: 512, Jobs: 1, ReadPercent: -1}, {Bytes: 1 << 30, Jobs: 5},
	} {
		if _, err := New(wl); !errors.Is(err, ErrWorkload) {
			t.Errorf("%+v: %v", wl, err)
		}
	}
}

func TestAllocs(t *testing.T) {
	for _, depth := range []int{64, 8} { // also with jobs that wait
		q := newFake()
		q.depth = depth
		w, _ := start(t, q, Workload{Bytes: 4096, Random: true, ReadPercent: 50, Jobs: 32})
		w.clock = nil
		w.measure(0, 1<<62)
		if n := testing.AllocsPerRun(1000, func() { q.complete(0) }); n != 0 {
			t.Errorf("queue of %d: %v allocations per I/O", depth, n)
		}
	}
}
