package backend

import (
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/tsc"
)

// lockSpan is how much of a Memory one lock is for, and lockCount how many
// there are; they repeat.
const (
	lockShift = 20
	lockCount = 64
)

// locks make writes by several pollers atomic. They are held for the length of
// a copy, by threads that do not wait for anything meanwhile, so others spin.
type locks [lockCount]struct {
	held atomic.Bool
	_    [63]byte
}

// writeShared is a write to memory that several pollers use.
func (m *Memory) writeShared(op *Op) {
	m.locks.lock(op)
	copy(m.mem[op.Offset:op.Offset+op.Length], op.Data)
	m.locks.unlock(op)
}

// span returns the locks for the range of op as two runs in rising order, the
// order in which everybody takes them.
func span(op *Op) (a, aEnd, b, bEnd int64) {
	if op.Length == 0 {
		return 0, 0, 0, 0
	}
	first := op.Offset >> lockShift
	last := (op.Offset + op.Length - 1) >> lockShift
	if last-first >= lockCount-1 {
		return 0, lockCount, 0, 0
	}
	first, last = first%lockCount, last%lockCount
	if first <= last {
		return first, last + 1, 0, 0
	}
	return 0, last + 1, first, lockCount
}

func (l *locks) lock(op *Op) {
	a, aEnd, b, bEnd := span(op)
	l.take(a, aEnd)
	l.take(b, bEnd)
}

func (l *locks) take(from, to int64) {
	for i := from; i < to; i++ {
		for !l[i].held.CompareAndSwap(false, true) {
			tsc.Pause()
		}
	}
}

func (l *locks) unlock(op *Op) {
	a, aEnd, b, bEnd := span(op)
	for i := a; i < aEnd; i++ {
		l[i].held.Store(false)
	}
	for i := b; i < bEnd; i++ {
		l[i].held.Store(false)
	}
}
