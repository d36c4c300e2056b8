package poller

import (
	"context"
	"testing"
)

type counter struct{ n int }

func (c *counter) Poll(int64) int                      { c.n++; return 0 }
func (c *counter) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, true }

func TestSmoke(t *testing.T) {
	for _, idle := range []IdleMode{Busy, Adaptive} {
		p, err := New(Config{Idle: idle})
		if err != nil {
			t.Fatal(err)
		}
		c := &counter{}
		p.Add(c)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			ran := false
			if err := p.Call(context.Background(), func() { ran = p.OnCore() }); err != nil || !ran {
				t.Fatal(err, ran)
			}
		}
		s := p.Stats()
		t.Log(s.Passes, s.Work, s.Tasks, s.Sleeps, s.Wakeups, s.MaxGap, s.GapQuantile(.5), s.GapQuantile(.999))
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		s = p.Stats()
		t.Log(s.Passes, s.Work, s.Tasks, s.Sleeps, s.Wakeups, s.MaxGap, s.GapQuantile(.5), s.GapQuantile(.999))
	}
}

func BenchmarkIdle(b *testing.B) {
	p, _ := New(Config{})
	defer p.Close()
	b.ReportAllocs()
	now := int64(0)
	for b.Loop() {
		now += 100
		p.Poll(now)
	}
}
