//qpoll:hot

package poller

import "sync/atomic"

// closedBit of mailbox.tail refuses further reservations. Positions are free
// running counts and never get there.
const closedBit = 1 << 63

// slot holds one posted function. seq says whose turn it is: the position at
// which a producer may fill it, one more once it is filled, and the position
// of the next lap once it is empty again.
type slot struct {
	seq atomic.Uint64
	fn  func()
}

// mailbox is a bounded queue with many producers and one consumer, after
// Dmitry Vyukov's: producers reserve a position by compare-and-swap on tail
// and publish through the slot's sequence; the consumer only loads, until it
// finds something.
type mailbox struct {
	slots []slot // a power of two
	head  uint64 // the consumer's own

	_    [linePad]byte
	tail atomic.Uint64 // next position, and closedBit
	_    [linePad]byte
}

func (m *mailbox) init(size int) {
	m.slots = make([]slot, size)
	for i := range m.slots {
		m.slots[i].seq.Store(uint64(i))
	}
}

func (m *mailbox) at(pos uint64) *slot { return &m.slots[pos&uint64(len(m.slots)-1)] }

// put adds a function. Any goroutine.
func (m *mailbox) put(fn func()) error {
	for {
		pos := m.tail.Load()
		if pos&closedBit != 0 {
			return ErrClosed
		}
		s := m.at(pos)
		switch lap := int64(s.seq.Load() - pos); {
		case lap < 0: // filled a lap ago and not taken yet
			return ErrMailboxFull
		case lap > 0: // another producer was faster; tail has moved
		case m.tail.CompareAndSwap(pos, pos+1): //qpoll:cold for what comes from other cores, no I/O
			s.fn = fn
			s.seq.Store(pos + 1)
			return nil
		}
	}
}

// ready reports whether take would find something. Consumer only.
func (m *mailbox) ready() bool { return m.at(m.head).seq.Load() == m.head+1 }

// take removes the oldest function, or returns nil if there is none, or none
// that its producer has finished with. Consumer only.
func (m *mailbox) take() func() {
	if !m.ready() {
		return nil
	}
	s := m.at(m.head)
	fn := s.fn
	s.fn = nil
	s.seq.Store(m.head + uint64(len(m.slots)))
	m.head++
	return fn
}

// reserved is the position after the last one that a producer has reserved.
func (m *mailbox) reserved() uint64 { return m.tail.Load() &^ closedBit }

// empty reports whether nothing is in the mailbox or on its way into it.
// Consumer only.
func (m *mailbox) empty() bool { return m.reserved() == m.head }

// close refuses what is put from now on.
func (m *mailbox) close() { m.tail.Or(closedBit) } //qpoll:cold once
