package target

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// segment is what a model of the send queue expects next: bytes, or the memory
// that they are taken from when they are sent.
type segment struct {
	b     []byte
	block int // 0: the bytes do not change
	off   int // where in its block b begins
}

// sendModel is what a send queue should do, said in another way.
type sendModel struct {
	segs []segment
}

// take returns the next n bytes of the stream. Of a block that is cut, the rest
// stays as it was.
func (m *sendModel) take(n int) (out []byte) {
	for n > 0 {
		s := &m.segs[0]
		k := min(n, len(s.b))
		out = append(out, s.b[:k]...)
		n -= k
		s.b = s.b[k:]
		if s.block > 0 {
			s.off = (s.off + k) % s.block
		}
		if len(s.b) == 0 {
			m.segs = m.segs[1:]
		}
	}
	if len(m.segs) == 0 {
		return out
	}
	if s := &m.segs[0]; s.block > 0 && s.off != 0 {
		k := min(s.block-s.off, len(s.b))
		frozen := segment{b: bytes.Clone(s.b[:k])}
		rest := segment{b: s.b[k:], block: s.block}
		m.segs = m.segs[1:]
		if len(rest.b) > 0 {
			m.segs = append([]segment{rest}, m.segs...)
		}
		m.segs = append([]segment{frozen}, m.segs...)
	}
	return out
}

// TestSendQueue compares the queue with the model under random use, while the
// data changes that may.
func TestSendQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	fill := func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	data := make([]byte, 64<<10)
	fill(data)
	var q sendQueue
	q.grow(4<<10, 32)
	var m sendModel
	refused := 0
	for range 40000 {
		switch r.IntN(6) {
		case 0, 1:
			n := 1 + r.IntN(headerRoom)
			b := q.reserve(headerRoom)
			if b == nil {
				refused++
				break
			}
			fill(b[:n])
			q.commit(n)
			m.segs = append(m.segs, segment{b: bytes.Clone(b[:n])})
		case 2:
			if q.reserve(headerRoom) == nil {
				break
			}
			off, n := r.IntN(len(data)/2), 1+r.IntN(8<<10)
			fixed := bytes.Clone(data[off : off+n])
			q.data(fixed, 0)
			m.segs = append(m.segs, segment{b: fixed})
		case 3:
			if q.reserve(headerRoom) == nil {
				break
			}
			shift := 9 + r.IntN(4)
			block := 1 << shift
			off, n := r.IntN(len(data)/2), 1+r.IntN(16<<10)
			q.data(data[off:off+n], noteUnsafe|note(shift)<<48|note(off%block))
			m.segs = append(m.segs, segment{b: data[off : off+n], block: block, off: off % block})
		case 4:
			left := int(q.queued - q.sent)
			if left == 0 {
				break
			}
			n := left
			if r.IntN(3) > 0 {
				n = 1 + r.IntN(left)
			}
			var got []byte
			for _, v := range q.iov[q.first:] {
				got = append(got, v.Bytes()...)
			}
			if len(got) != left {
				t.Fatalf("%d bytes in the queue, it says %d", len(got), left)
			}
			if want := m.take(n); !bytes.Equal(got[:n], want) {
				t.Fatal("the stream differs")
			}
			q.consume(n)
			if q.pending() == (len(m.segs) == 0) {
				t.Fatalf("pending %v with %d segments left", q.pending(), len(m.segs))
			}
		case 5:
			at := r.IntN(len(data) - 512)
			fill(data[at : at+512])
		}
	}
	if refused == 0 {
		t.Error("the queue was never full")
	}
	before := int(q.queued - q.sent)
	term := pattern(200)
	copy(q.reserveAnyway(len(term)), term)
	q.commit(len(term))
	m.segs = append(m.segs, segment{b: term})
	var got []byte
	for _, v := range q.iov[q.first:] {
		got = append(got, v.Bytes()...)
	}
	if want := m.take(before + len(term)); !bytes.Equal(got, want) {
		t.Error("the stream differs at its end")
	}
	q.consume(len(got))
	q.forget()
	for i, v := range q.iov[:cap(q.iov)] {
		if v.Base != nil {
			t.Fatalf("piece %d is remembered", i)
		}
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// TestReserveAnyway queues a last PDU when there is no room at all.
func TestReserveAnyway(t *testing.T) {
	var q sendQueue
	q.grow(512, 8)
	var want []byte
	for {
		b := q.reserve(headerRoom)
		if b == nil {
			break
		}
		n := copy(b, pattern(headerRoom))
		q.commit(n)
		q.data(pattern(100), noteUnsafe|9<<48)
		want = append(append(want, b[:n]...), pattern(100)...)
	}
	for _, n := range []int{24, 300} {
		copy(q.reserveAnyway(n), pattern(n))
		q.commit(n)
		want = append(want, pattern(n)...)
	}
	var got []byte
	for q.pending() {
		k := min(77, int(q.queued-q.sent))
		var all []byte
		for _, v := range q.iov[q.first:] {
			all = append(all, v.Bytes()...)
		}
		got = append(got, all[:k]...)
		q.consume(k)
	}
	if !bytes.Equal(got, want) {
		t.Error("the stream differs")
	}
}

func TestBufferClasses(t *testing.T) {
	for n := uint32(1); n <= mostBuffer; n += 777 {
		class := bufferClass(n)
		if size := bufferSize(class); size < int64(n) || class > 0 && size/2 >= int64(n) {
			t.Fatalf("%d bytes in a buffer of %d", n, size)
		}
	}
	if c := bufferClass(mostBuffer); c != classes-1 {
		t.Errorf("class %d", c)
	}
	p := pool{limit: 3 * leastBuffer}
	a, b := p.get(0), p.get(0)
	if !p.fits(0) || p.fits(1) {
		t.Error("limit")
	}
	p.put(a)
	c := p.get(1) // beyond the limit, but it is what the pool does when asked
	p.put(b)
	p.put(c)
	if p.used != 0 || p.kept > p.limit {
		t.Errorf("%d used, %d kept", p.used, p.kept)
	}
	if d, e := p.get(0), p.get(0); d == e {
		t.Error("one buffer twice")
	}
}

func TestRequestList(t *testing.T) {
	var l requestList
	var r [5]request
	for i := range 4 {
		l.push(&r[i])
	}
	l.pushFront(&r[4])
	for _, i := range []int{2, 3, 4} {
		if !l.remove(&r[i]) || l.remove(&r[i]) {
			t.Fatalf("request %d", i)
		}
	}
	l.push(&r[2])
	for _, want := range []int{0, 1, 2} {
		if got := l.pop(); got != &r[want] {
			t.Fatalf("not request %d", want)
		}
	}
	if l.head != nil || l.tail != nil {
		t.Error("not empty")
	}
	l.pushFront(&r[0])
	if l.tail != &r[0] {
		t.Error("no tail")
	}
}

func TestViewFind(t *testing.T) {
	v := &view{list: []entry{{nsid: 1}, {nsid: 3}, {nsid: 1024}, {nsid: 5000}, {nsid: 0xfffffffd}}}
	v.index()
	for _, e := range v.list {
		if got := v.find(e.nsid); got == nil || got.nsid != e.nsid {
			t.Errorf("%d not found", e.nsid)
		}
	}
	for _, nsid := range []uint32{0, 2, 4, 1023, 1025, 4999, 5001, 0xfffffffc, 0xfffffffe, 0xffffffff} {
		if e := v.find(nsid); e != nil {
			t.Errorf("%d found: %d", nsid, e.nsid)
		}
	}
}

// TestNoAllocation executes commands without allocating.
func TestNoAllocation(t *testing.T) {
	for name, f := range allocCases(t) {
		t.Run(name, func(t *testing.T) {
			f()
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%v allocations for %d commands", n, benchDepth)
			}
		})
	}
}
