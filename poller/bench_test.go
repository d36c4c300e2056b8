package poller

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/tsc"
)

// BenchmarkPass is a pass as a running poller makes it, the clock included.
func BenchmarkPass(b *testing.B) {
	for _, sources := range []int{0, 1, 8, 64} {
		b.Run(fmt.Sprintf("sources=%d", sources), func(b *testing.B) {
			p := newPoller(b, Config{})
			for range sources {
				p.Add(&source{})
			}
			p.begin(p.clock())
			b.ReportAllocs()
			for b.Loop() {
				p.pass(p.clock())
			}
		})
	}
}

// BenchmarkStep is a pass as an owner makes it.
func BenchmarkStep(b *testing.B) {
	p := newPoller(b, Config{})
	b.ReportAllocs()
	now := int64(0)
	for b.Loop() {
		now += 100
		p.Poll(now)
	}
}

func BenchmarkPublish(b *testing.B) {
	p := newPoller(b, Config{})
	for b.Loop() {
		p.countGap(30)
		p.countPass(1)
		p.now++
		p.publish(p.now)
	}
}

func BenchmarkOnCore(b *testing.B) {
	p := newPoller(b, Config{})
	for b.Loop() {
		p.OnCore()
	}
}

// BenchmarkPostDrain is what one posted function costs both sides, on one
// core.
func BenchmarkPostDrain(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			p := newPoller(b, Config{})
			task := func() {}
			b.ReportAllocs()
			for i := 0; i < b.N; i += batch {
				for range batch {
					p.Post(task)
				}
				p.drain()
			}
		})
	}
}

func BenchmarkTimerReset(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			p := newPoller(b, Config{})
			for i := range others {
				p.AfterFunc(time.Hour+time.Duration(i), func() {})
			}
			timer := p.AfterFunc(time.Hour, func() {})
			b.ReportAllocs()
			d := time.Duration(0)
			for b.Loop() {
				d = (d + 7919) % time.Hour
				timer.Reset(d)
			}
		})
	}
}

// idleModes runs a benchmark against a running poller of each kind.
func idleModes(b *testing.B, f func(b *testing.B, p *Poller)) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"busy", Config{}},
		{"adaptive", Config{Idle: Adaptive}},
		{"asleep", Config{Idle: Adaptive, Spin: -1}},
	} {
		b.Run(c.name, func(b *testing.B) { f(b, startPoller(b, c.cfg)) })
	}
}

// BenchmarkPostToRun is the time from Post until the function has begun, as
// the poster sees it, which watches without parking.
func BenchmarkPostToRun(b *testing.B) {
	idleModes(b, func(b *testing.B, p *Poller) {
		var ran atomic.Int64
		task := func() { ran.Add(1) }
		n := int64(0)
		b.ReportAllocs()
		for b.Loop() {
			n++
			if err := p.Post(task); err != nil {
				b.Fatal(err)
			}
			for spins := 0; ran.Load() != n; spins++ {
				if spins%1000 == 999 {
					runtime.Gosched()
				}
				tsc.Pause()
			}
		}
	})
}

// BenchmarkCall is the round trip of a Call.
func BenchmarkCall(b *testing.B) {
	idleModes(b, func(b *testing.B, p *Poller) {
		ctx := context.Background()
		task := func() {}
		b.ReportAllocs()
		for b.Loop() {
			if err := p.Call(ctx, task); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPostParallel has many posters at one mailbox.
func BenchmarkPostParallel(b *testing.B) {
	p := startPoller(b, Config{Mailbox: 1 << 16})
	task := func() {}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			for p.Post(task) != nil {
				runtime.Gosched()
			}
		}
	})
}
