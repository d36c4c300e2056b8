package tsc

import (
	"math/big"
	"testing"
)

// fake is a machine whose counter and monotonic clock go as told.
type fake struct {
	clock
	hz    uint64 // what the counter really does
	ns    int64
	base  uint64 // the counter at 0 ns
	asked int    // how often trust was
}

func newFake(hz, stated uint64, trust bool) *fake {
	f := &fake{hz: hz, ns: 1_000_000, base: 1 << 40}
	f.ticks = func() uint64 { return f.base + f.count() }
	f.mono = func() int64 { f.ns += 25; return f.ns } // reading takes time
	f.stated = stated
	f.trust = func() bool { f.asked++; return trust }
	f.begin()
	return f
}

func (f *fake) count() uint64 {
	n := new(big.Int).Mul(big.NewInt(f.ns), new(big.Int).SetUint64(f.hz))
	return n.Div(n, big.NewInt(1e9)).Uint64()
}

// now reads the clock as Now does.
func (f *fake) now() int64 {
	if l := f.current.Load(); l != nil && !l.retired.Load() {
		return l.at(f.ticks())
	}
	return f.slow()
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

func TestMultiplier(t *testing.T) {
	for _, freq := range []uint64{minFrequency, 24_000_000, 62_500_000, 1e9, 2_596_128_000, maxFrequency} {
		l := line{mult: multiplier(freq)}
		for _, ticks := range []uint64{0, 1, freq, 3600 * freq, 10 * 365 * 86400 * freq} {
			want := new(big.Int).Mul(new(big.Int).SetUint64(ticks), big.NewInt(1e9))
			want.Div(want, new(big.Int).SetUint64(freq))
			// The multiplier is rounded down in its 53rd binary place.
			bound := 1 + int64(ticks>>fraction)
			if got := l.at(ticks); distance(got, want.Int64()) > bound {
				t.Errorf("%d ticks at %d Hz are %d ns, want %v within %d", ticks, freq, got, want, bound)
			}
		}
	}
}

func TestLine(t *testing.T) {
	l := line{start: 1000, ns: 5000, mult: multiplier(500_000_000)} // 2 ns a tick
	for _, c := range []struct {
		ticks uint64
		want  int64
	}{
		{1000, 5000},
		{1001, 5001}, // 2 ns, but for the last place of the multiplier
		{1500, 6000},
		{999, 4998}, // a core whose counter lags
		{500, 4000},
	} {
		if got := l.at(c.ticks); distance(got, c.want) > 1 {
			t.Errorf("%d ticks are %d ns, want %d", c.ticks, got, c.want)
		}
	}
}

func TestFrequencyChoice(t *testing.T) {
	for _, c := range []struct {
		name         string
		real, stated uint64
		want         uint64
		within       uint64
	}{
		{"measured", 2_596_128_000, 0, 2_596_128_000, 100_000},
		{"stated and true", 2_400_000_000, 2_400_000_000, 2_400_000_000, 0},
		{"stated, a little off", 2_400_000_000, 2_401_000_000, 2_401_000_000, 0},
		{"stated and false", 2_400_000_000, 3_000_000_000, 2_400_000_000, 100_000},
		{"slow counter", 25_000_000, 25_000_000, 25_000_000, 0},
	} {
		f := newFake(c.real, c.stated, true)
		f.ensure()
		if f.refused.Load() {
			t.Errorf("%s: refused", c.name)
			continue
		}
		got := f.freq.Load()
		if d := distance(int64(got), int64(c.want)); d > int64(c.within) {
			t.Errorf("%s: %d Hz, want %d within %d", c.name, got, c.want, c.within)
		}
		at := f.now()
		f.ns += 1e9
		if d := distance(f.now()-at, 1e9); d > 50_000+1e9/int64(agree)*int64(min(c.stated, 1)) {
			t.Errorf("%s: a second takes %d ns more or less", c.name, d)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		hz    uint64
		trust bool
	}{
		{"not trusted", 2_400_000_000, false},
		{"stands still", 0, true},
		{"too slow", minFrequency / 2, true},
		{"too fast", 2 * maxFrequency, true},
	} {
		f := newFake(c.hz, 0, c.trust)
		first := f.now()
		f.ns += 500
		if d := f.now() - first; d < 500 || d > 1000 {
			t.Errorf("%s: 500 ns are %d", c.name, d)
		}
		if !f.refused.Load() || f.freq.Load() != 0 {
			t.Errorf("%s: not refused, %d Hz", c.name, f.freq.Load())
		}
		if f.asked != 1 {
			t.Errorf("%s: asked %d times", c.name, f.asked)
		}
	}
}

// A clock that is calibrated again, and corrected, goes on without a step.
func TestCalibrateAgain(t *testing.T) {
	for _, correction := range []int64{-1_000_000, 0, 1_000_000} {
		f := newFake(2_500_000_000, 0, true)
		last := f.now()
		old := f.current.Load()
		f.hz = uint64(2_500_000_000 + correction)
		f.base -= uint64(correction / 1000) // keeps the count at 1 ms
		for range 100 {
			f.ns += 100_000
			before := f.now()
			f.calibrate()
			after := f.now()
			if before < last || after < before {
				t.Fatalf("correction %d: %d, %d, %d", correction, last, before, after)
			}
			if after-before > 10_000 {
				t.Fatalf("correction %d: a step from %d to %d", correction, before, after)
			}
			last = after
		}
		if !old.retired.Load() || f.current.Load().retired.Load() {
			t.Errorf("correction %d: the wrong line is retired", correction)
		}
	}
}

// A calibration that fails later on changes nothing.
func TestCalibrateInVain(t *testing.T) {
	f := newFake(2_500_000_000, 0, true)
	f.ensure()
	old := f.current.Load()
	f.ns += 1e9
	f.base -= 1 << 39 // as after a reset of the counter
	f.calibrate()
	if f.current.Load() != old || old.retired.Load() || f.refused.Load() {
		t.Error("the line was given up")
	}
}
