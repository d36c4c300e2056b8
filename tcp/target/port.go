package target

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
)

// Port is an address where the target listens.
type Port struct {
	t      *Target
	cfg    PortConfig
	id     uint16
	closed atomic.Bool // not listening; connections that come late are closed

	// Under the target's lock.
	addr    netip.AddrPort
	fd      int // -1: not listening
	worker  *worker
	states  map[uint32]nvme.ANAState
	conns   map[*conn]struct{}
	removed bool
}

// AddPort adds a port. It listens at once if the target is running.
func (t *Target) AddPort(cfg PortConfig) (*Port, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == targetClosed {
		return nil, ErrClosed
	}
	id, err := t.portID(cfg.ID)
	if err != nil {
		return nil, err
	}
	p := &Port{
		t: t, cfg: cfg, id: id, fd: -1, addr: cfg.Address,
		states: map[uint32]nvme.ANAState{}, conns: map[*conn]struct{}{},
	}
	p.closed.Store(true)
	for group, s := range cfg.ANA {
		p.states[group] = s
	}
	if t.state == targetRunning {
		if err := p.open(); err != nil {
			return nil, err
		}
		p.serve()
	}
	t.ports = append(t.ports, p)
	t.discoveryChanged()
	return p, nil
}

// portID returns the identifier of a new port.
func (t *Target) portID(want uint16) (uint16, error) {
	used := map[uint16]bool{}
	for _, p := range t.ports {
		used[p.id] = true
	}
	if want != 0 {
		if used[want] {
			return 0, fmt.Errorf("%w: port %d", ErrExists, want)
		}
		return want, nil
	}
	for id := uint16(1); id != 0; id++ {
		if !used[id] {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: no port ID is free", ErrConfig)
}

// open opens the port's socket.
func (p *Port) open() error {
	fd, err := listener(p.addr, p.cfg.Backlog)
	if err != nil {
		return fmt.Errorf("nvme/tcp target: listen at %v: %w", p.addr, err)
	}
	if p.addr, err = sys.LocalAddr(fd); err != nil {
		_ = sys.Close(fd)
		return fmt.Errorf("nvme/tcp target: %w", err)
	}
	p.fd = fd
	return nil
}

// discard closes a socket that no worker has yet.
func (p *Port) discard() {
	if p.fd >= 0 && p.worker == nil {
		_ = sys.Close(p.fd)
		p.fd = -1
	}
}

// serve gives the port's socket to a worker.
func (p *Port) serve() {
	p.worker = p.t.workers[p.t.nextWorker%len(p.t.workers)]
	p.t.nextWorker++
	p.closed.Store(false)
	w, fd := p.worker, p.fd
	w.post(func() { w.listen(p, fd) })
}

func listener(addr netip.AddrPort, backlog int) (fd int, err error) {
	if fd, err = sys.Socket(sys.Family(addr.Addr())); err != nil {
		return -1, err
	}
	if err = sys.SetReuseAddr(fd, true); err == nil {
		if err = sys.Bind(fd, addr); err == nil {
			err = sys.Listen(fd, backlog)
		}
	}
	if err != nil {
		_ = sys.Close(fd)
		return -1, err
	}
	return fd, nil
}

// shut stops listening. The address is free at once; the descriptor is closed
// by the worker that has it.
func (p *Port) shut() {
	if p.fd < 0 {
		return
	}
	p.closed.Store(true)
	_ = sys.Shutdown(p.fd, sys.SHUT_RDWR)
	w, fd := p.worker, p.fd
	p.fd, p.worker = -1, nil
	w.post(func() { w.unlisten(fd) })
}

// Addr returns the address that the port listens at, or will.
func (p *Port) Addr() netip.AddrPort {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	return p.addr
}

// ID returns the port's identifier (PORTID).
func (p *Port) ID() uint16 { return p.id }

// Remove stops listening, ends the connections of the port, and takes it out
// of the discovery log.
func (p *Port) Remove() {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.removed {
		return
	}
	p.removed = true
	p.shut()
	p.kill(ErrClosed)
	for i, q := range t.ports {
		if q == p {
			t.ports = append(t.ports[:i:i], t.ports[i+1:]...)
			break
		}
	}
	t.discoveryChanged()
}

// Pause stops listening and ends the connections, as if the port's network had
// failed; Resume listens again. The port stays in the discovery log.
func (p *Port) Pause() {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	p.shut()
	p.kill(ErrClosed)
}

// Resume listens again at the same address, after Pause.
func (p *Port) Resume() error {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if p.fd >= 0 || p.removed || p.t.state != targetRunning {
		return fmt.Errorf("%w: Resume of a port that is not paused", ErrState)
	}
	if err := p.open(); err != nil {
		return err
	}
	p.serve()
	return nil
}

// Kill ends the connections of the port, and returns how many there were.
// Hosts may connect again at once.
func (p *Port) Kill() int {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	return p.kill(errKilled)
}

func (p *Port) kill(cause error) int {
	for c := range p.conns {
		p.t.killConn(c, cause)
	}
	return len(p.conns)
}

// serves reports whether a subsystem can be reached at the port.
func (p *Port) serves(s *Subsystem) bool {
	if p.cfg.Subsystems == nil || s.discovery {
		return true
	}
	for _, nqn := range p.cfg.Subsystems {
		if nqn == s.cfg.NQN {
			return true
		}
	}
	return false
}
