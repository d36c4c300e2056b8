package backend

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// patience is far more than anything here takes.
const patience = 30 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lab is a backend with a channel on a poller that the test steps.
type lab struct {
	t   testing.TB
	p   *poller.Poller
	b   Backend
	ch  Channel
	now int64
}

// Poll implements poller.Source.
func (l *lab) Poll(now int64) int { return l.ch.Poll(now) }

func newLab(t testing.TB, b Backend) *lab {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true})
	must(t, err)
	l := &lab{t: t, p: p, b: b, now: 1e9}
	l.ch, err = b.Open(p)
	must(t, err)
	p.Add(l)
	p.Poll(l.now)
	t.Cleanup(func() {
		l.ch.Close()
		must(t, p.Close())
		must(t, b.Close())
	})
	return l
}

func (l *lab) advance(d time.Duration) {
	l.now += int64(d)
	l.p.Poll(l.now)
}

// job is an operation of a test's.
type job struct {
	op     Op
	done   int
	at     int64 // when it was done
	kept   bool
	l      *lab
	inline bool
}

// Keep implements Owner.
func (j *job) Keep(*Op) { j.kept = true }

// Done implements Owner.
func (j *job) Done(*Op) { j.done++; j.at = j.l.now }

func (l *lab) submit(k Kind, off, n int64, data []byte) *job {
	return l.start(Op{Kind: k, Offset: off, Length: n, Data: data})
}

// start submits an operation.
func (l *lab) start(op Op) *job {
	j := &job{l: l, op: op}
	j.op.Owner = j
	if op.Kind == Read && !l.b.Info().Views {
		j.op.Data = make([]byte, op.Length)
	}
	if l.ch.Submit(&j.op) {
		j.inline = true
		j.Done(nil)
	}
	return j
}

// await steps until an operation is done.
func (l *lab) await(j *job) *job {
	l.t.Helper()
	for end := time.Now().Add(patience); j.done == 0; {
		if time.Now().After(end) {
			l.t.Fatalf("%v at %d is not done", j.op.Kind, j.op.Offset)
		}
		l.advance(time.Microsecond)
	}
	if j.done != 1 {
		l.t.Fatalf("%v at %d was done %d times", j.op.Kind, j.op.Offset, j.done)
	}
	return j
}

// do executes an operation that has to succeed.
func (l *lab) do(k Kind, off, n int64, data []byte) []byte {
	l.t.Helper()
	j := l.await(l.submit(k, off, n, data))
	if j.op.Status != 0 {
		l.t.Fatalf("%v at %d: %v", k, off, j.op.Status)
	}
	return j.op.Data
}

// fails executes an operation that has to fail.
func (l *lab) fails(k Kind, off, n int64, data []byte, want nvme.Status) {
	l.t.Helper()
	if j := l.await(l.submit(k, off, n, data)); j.op.Status != want {
		l.t.Errorf("%v of %d bytes at %d: %v, want %v", k, n, off, j.op.Status, want)
	}
}

func pattern(seed byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}
