//go:build guest

package interop

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// relay passes TCP connections on and can cut them, wherever in a PDU they are.
type relay struct {
	to   string
	l    *net.TCPListener
	qemu side // where QEMU is
	wg   sync.WaitGroup

	mu     sync.Mutex
	rng    *rand.Rand
	budget int64 // most bytes that a new connection carries before it is cut; 0: no limit
	pairs  []*pair
	cuts   int
	closed bool
}

// side is a side of a relay.
type side int

const (
	client side = iota // who connects
	server             // who is connected to
)

// pair is a connection and the one that it is passed on by.
type pair struct {
	r     *relay
	conns [2]*net.TCPConn // by side
	mu    sync.Mutex
	left  int64 // until the cut, if positive
}

// newRelay listens on a port of the loopback interface.
func newRelay(t *testing.T, to string, qemu side) *relay {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(t, err)
	r := &relay{to: to, l: l, qemu: qemu, rng: rand.New(rand.NewPCG(1, 2))}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		r.closed = true
		for _, p := range r.pairs {
			p.close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *relay) port() int { return r.l.Addr().(*net.TCPAddr).Port }

func (r *relay) accept() {
	for {
		a, err := r.l.AcceptTCP()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp4", r.to)
		if err != nil {
			a.Close()
			continue
		}
		p := &pair{r: r, conns: [2]*net.TCPConn{a, b.(*net.TCPConn)}}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			p.close()
			return
		}
		if r.budget > 0 {
			p.left = 1 + r.rng.Int64N(r.budget)
		}
		r.pairs = append(r.pairs, p)
		r.wg.Go(func() { p.pass(client, server) })
		r.wg.Go(func() { p.pass(server, client) })
		r.mu.Unlock()
	}
}

// pass copies one direction until either side ends or the budget is used up.
func (p *pair) pass(from, to side) {
	defer p.end(from)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.conns[from].Read(buf)
		more, last := p.spend(n)
		if more > 0 {
			if _, werr := p.conns[to].Write(buf[:more]); werr != nil {
				return
			}
		}
		if last || err != nil {
			return
		}
	}
}

// spend takes n bytes from the budget. It returns how many may pass, and whether
// they are the last.
func (p *pair) spend(n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.left == 0:
		return n, false
	case int64(n) < p.left:
		p.left -= int64(n)
		return n, false
	}
	n = int(p.left)
	p.left = 1 // for the other direction
	return n, true
}

// end closes both connections, and forgets the pair. What QEMU still sends is
// read to its end.
func (p *pair) end(from side) {
	p.close()
	p.r.forget(p)
	if qemu := p.r.qemu; from == qemu {
		_, _ = io.Copy(io.Discard, p.conns[qemu])
		_ = p.conns[qemu].Close()
	}
}

func (r *relay) forget(p *pair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.pairs, p); i >= 0 {
		r.pairs = slices.Delete(r.pairs, i, i+1)
		r.cuts++
	}
}

// close ends both connections. Whoever is not QEMU gets a reset, and what was
// buffered is lost. A reset may abort QEMU 7.2, an assertion in its user network;
// it sees the end of the stream.
func (p *pair) close() {
	other := p.conns[1-p.r.qemu]
	_ = other.SetLinger(0)
	_ = other.Close()
	qemu := p.conns[p.r.qemu]
	_ = qemu.CloseWrite()
	_ = qemu.SetReadDeadline(time.Now().Add(patience))
}

// cut ends one of the connections, if there are any.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pairs) > 0 {
		i := r.rng.IntN(len(r.pairs))
		r.pairs[i].close()
		r.pairs = slices.Delete(r.pairs, i, i+1)
		r.cuts++
	}
}

// limit has new connections cut after so many bytes at most, of both directions
// together; 0 is no limit.
func (r *relay) limit(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budget = n
}

// ended returns how many connections have ended.
func (r *relay) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cuts
}
