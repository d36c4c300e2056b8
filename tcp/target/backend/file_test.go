package backend

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// TestFileCancel takes back operations that no goroutine has begun with.
func TestFileCancel(t *testing.T) {
	f, err := NewFile(FileConfig{Path: t.TempDir() + "/disk", Size: size, Workers: 1})
	must(t, err)
	l := newLab(t, NewFail(f))
	f.exclusive.Lock() // holds the only goroutine up
	first := l.submit(Write, 0, 512, pattern(1, 512))
	f.mu.Lock()
	for end := time.Now().Add(patience); f.todo.head != nil && time.Now().Before(end); {
		f.mu.Unlock()
		time.Sleep(time.Millisecond)
		f.mu.Lock()
	}
	f.mu.Unlock()
	second, third := l.submit(Write, 512, 512, pattern(2, 512)), l.submit(Write, 1024, 512, pattern(3, 512))
	if l.ch.Cancel(&first.op) || !l.ch.Cancel(&second.op) || l.ch.Cancel(&second.op) {
		t.Error("cancelled what has begun, or not what has not")
	}
	f.exclusive.Unlock()
	l.await(first)
	l.await(third)
	if second.done != 0 {
		t.Error("a cancelled operation is done")
	}
	if got := l.do(Read, 512, 512, nil); !isZero(got) {
		t.Error("a cancelled operation was executed")
	}
	if deadline, ok := l.ch.Arm(l.now); deadline != 0 || !ok {
		t.Errorf("deadline %d, %v", deadline, ok)
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := range kinds + 1 {
		if s := k.String(); s == "" || seen[s] {
			t.Errorf("kind %d is %q", k, s)
		} else {
			seen[s] = true
		}
	}
}

func TestFinish(t *testing.T) {
	j := &job{l: &lab{}}
	j.op.Owner = j
	j.op.Finish(nvme.StatusWriteFault)
	if j.done != 1 || j.op.Status != nvme.StatusWriteFault {
		t.Errorf("done %d times, %v", j.done, j.op.Status)
	}
}

// TestRateArm asks a limiter when it has to be polled.
func TestRateArm(t *testing.T) {
	for _, limit := range []Limit{{IOPS: 1e3}, {BytesPerSecond: 512e3}, {IOPS: 1e3, BytesPerSecond: 1e9}} {
		l := newLab(t, NewRate(NewNull(size), limit))
		if deadline, ok := l.ch.Arm(l.now); deadline != 0 || !ok {
			t.Errorf("%+v: deadline %d, %v with nothing held", limit, deadline, ok)
		}
		l.submit(Read, 0, 512, nil)
		held := l.submit(Read, 0, 512, nil)
		deadline, ok := l.ch.Arm(l.now)
		if d := time.Duration(deadline - l.now); !ok || d < time.Millisecond || d > time.Millisecond+time.Microsecond {
			t.Errorf("%+v: deadline in %v, %v", limit, d, ok)
		}
		l.advance(time.Duration(deadline - l.now))
		if held.done != 1 {
			t.Errorf("%+v: not done at the deadline", limit)
		}
	}
}
