package mpath

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// chain submits one I/O after the other from the completion of the one before.
type chain struct {
	c    *Channel
	op   nvme.Opcode
	buf  []byte
	left int
	busy atomic.Bool
	bad  nvme.Status
	err  error
}

func chainDone(arg any, st nvme.Status) {
	k := arg.(*chain)
	if !st.OK() {
		k.bad = st
	}
	k.next()
}

func (k *chain) next() {
	if k.left == 0 || k.err != nil {
		k.busy.Store(false)
		return
	}
	k.left--
	lba := uint64(k.left) % testBlocks
	switch k.op {
	case nvme.OpRead:
		k.err = k.c.Read(k.buf, lba, 1, chainDone, k)
	case nvme.OpWrite:
		k.err = k.c.Write(k.buf, lba, 1, chainDone, k)
	case nvme.OpFlush:
		k.err = k.c.Flush(chainDone, k)
	default:
		k.err = k.c.WriteZeroes(lba, 1, chainDone, k)
	}
	if k.err != nil {
		k.busy.Store(false)
	}
}

// Nothing allocates from submission to completion, whatever the policy.
func TestNoAllocations(t *testing.T) {
	w := newWorld(t, 3, nil)
	for _, name := range policy.Names() {
		must(t, w.h.SetPolicy(name))
		for _, op := range []nvme.Opcode{nvme.OpRead, nvme.OpWrite, nvme.OpFlush, nvme.OpWriteZeroes} {
			k := &chain{c: w.ch, op: op, buf: make([]byte, 512)}
			start := k.next
			run := func() {
				k.left = 500
				k.busy.Store(true)
				if err := w.p.Post(start); err != nil {
					t.Fatal(err)
				}
				for k.busy.Load() {
					runtime.Gosched()
				}
			}
			run()
			if n := testing.AllocsPerRun(20, run); n != 0 || k.bad != 0 || k.err != nil {
				t.Errorf("%s, opcode %#x: %v allocations in 500 I/Os, %v, %v", name, uint8(op), n, k.bad, k.err)
			}
		}
	}
	w.idle(w.ch)
}

// BenchmarkChannel is the cost that a channel adds to an I/O of a fake that
// executes at once: compare with the queue of a namespace.
func BenchmarkChannel(b *testing.B) {
	w := newWorld(b, 2, nil)
	k := &chain{c: w.ch, op: nvme.OpRead, buf: make([]byte, 512), left: b.N}
	k.busy.Store(true)
	b.ReportAllocs()
	b.ResetTimer()
	must(b, w.p.Post(k.next))
	for k.busy.Load() {
		runtime.Gosched()
	}
	if k.err != nil || k.bad != 0 {
		b.Fatal(k.err, k.bad)
	}
}
