package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// sim is a run of one scenario with one contender.
type sim struct {
	sc     *Scenario
	who    Contender
	now    int64
	agenda agenda
	rng    *rand.Rand
	sets   []*policy.Set
	paths  []pathState
	conns  []conn // by core and path
	ios    []ioState
	free   []int32 // I/Os that wait for an arrival; only with Arrive
	result *Result
	warm   int64
	end    int64
}

// ioState is an I/O on its way.
type ioState struct {
	ticket policy.Ticket
	start  int64
	bytes  uint32
	core   int32
	path   int32
	dir    policy.Dir
}

// pathState is a path as all cores share it.
type pathState struct {
	Path
	link    [2]int64 // until when the link is taken, per direction
	servers []int64  // likewise
}

// conn is the connection of a core on a path.
type conn struct {
	still     int64    // until when it stands still
	delivered [2]int64 // when the last I/O came out, since order is kept
}

// Run simulates a scenario with one contender. The error says what is wrong
// with either, and wraps [ErrScenario] or an error of package policy.
func Run(sc *Scenario, who Contender) (*Result, error) {
	return run(context.Background(), sc, who)
}

// patience is how many events pass between looks at whether to give up.
const patience = 1 << 16

func run(ctx context.Context, sc *Scenario, who Contender) (*Result, error) {
	s, err := newSim(sc, who)
	if err != nil {
		return nil, fmt.Errorf("lab: scenario %q, %s: %w", sc.Name, who.Label, err)
	}
	for n := 1; len(s.agenda.events) > 0; n++ {
		e := s.agenda.pop()
		if e.at >= s.end {
			break
		}
		s.now = e.at
		s.handle(e)
		if n%patience == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	s.result.finish()
	return s.result, nil
}

func newSim(sc *Scenario, who Contender) (*sim, error) {
	if err := sc.check(who); err != nil {
		return nil, err
	}
	s := &sim{
		sc: sc, who: who, rng: rand.New(rand.NewPCG(sc.Seed, 0x9e3779b97f4a7c15)),
		warm: int64(sc.Warmup), end: int64(sc.Duration),
		conns: make([]conn, sc.Cores*len(sc.Paths)),
	}
	for _, p := range sc.Paths {
		s.paths = append(s.paths, pathState{Path: p, servers: make([]int64, p.Servers)})
	}
	if err := s.makeSets(); err != nil {
		return nil, err
	}
	s.result = newResult(sc, who)
	for i := range sc.Script {
		s.agenda.push(int64(sc.Script[i].At), change, int32(i))
	}
	s.begin()
	return s, nil
}

// makeSets makes the Set of each core: in one group, or each in its own.
func (s *sim) makeSets() error {
	cfg := policy.Config{LatencyBatch: s.sc.Window}
	group, err := policy.NewGroup(s.sc.Cores, cfg)
	if err != nil {
		return err
	}
	counts := make([]int, len(s.sc.Paths))
	for core := range s.sc.Cores {
		set := group.Set(core)
		if s.who.Alone {
			alone, err := policy.NewGroup(1, cfg)
			if err != nil {
				return err
			}
			set = alone.Set(0)
		}
		if s.who.shared {
			err = set.UsePolicy("counter", &sharedCounter{inFlight: counts})
		} else {
			err = set.Use(s.who.Policy)
		}
		if err != nil {
			return err
		}
		for i := range s.sc.Paths {
			weight := policy.DefaultWeight
			if s.who.Weights != nil {
				weight = s.who.Weights[i]
			}
			if err := set.Put(i, policy.Path{State: nvme.ANAOptimized, Usable: true, Distance: s.sc.distance(core, i), Weight: weight}); err != nil {
				return err
			}
		}
		s.sets = append(s.sets, set)
	}
	return nil
}

// begin sends the first I/Os, cores a little apart from each other.
func (s *sim) begin() {
	for core := range s.sc.Cores {
		if s.sc.Arrive > 0 {
			s.agenda.push(s.exponential(1e9/s.sc.Arrive), arrival, int32(core))
			continue
		}
		for range s.sc.Depth {
			s.ios = append(s.ios, ioState{core: int32(core)})
			s.agenda.push(s.rng.Int64N(int64(10*time.Microsecond)), arrival, -int32(len(s.ios)))
		}
	}
}

func (s *sim) handle(e event) {
	switch e.kind {
	case arrival:
		s.arrive(e.what)
	case enterLink:
		s.link(e.what)
	case enterServer:
		s.serve(e.what)
	case completed:
		s.complete(e.what)
	case change:
		c := &s.sc.Script[e.what]
		p := &s.paths[c.Path]
		p.Path = c.To
		for len(p.servers) < c.To.Servers {
			p.servers = append(p.servers, s.now)
		}
		p.servers = p.servers[:c.To.Servers]
	}
}

// arrive begins an I/O: the negative of an index for one of a fixed number, a
// core for one that came by itself.
func (s *sim) arrive(what int32) {
	if what < 0 {
		s.submit(-what - 1)
		return
	}
	s.agenda.push(s.now+s.exponential(1e9/s.sc.Arrive), arrival, what)
	if len(s.free) == 0 {
		s.ios = append(s.ios, ioState{})
		s.free = append(s.free, int32(len(s.ios)-1))
	}
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.ios[i].core = what
	s.submit(i)
}

// submit chooses a path for an I/O and sends it there.
func (s *sim) submit(i int32) {
	io := &s.ios[i]
	io.start = s.now
	io.bytes = s.size()
	io.dir = policy.Read
	if s.sc.Writes > 0 && s.rng.Float64() < s.sc.Writes {
		io.dir = policy.Write
	}
	set := s.sets[io.core]
	path := set.Select(s.now, io.bytes, io.dir)
	io.path = int32(path)
	set.Dispatch(&io.ticket, path, s.now, io.bytes, io.dir)
	s.result.dispatched(path, s.now >= s.warm)
	s.connection(i)
}

const packet = 1448

// connection is where losses make an I/O and those behind it wait.
func (s *sim) connection(i int32) {
	io := &s.ios[i]
	p := &s.paths[io.path]
	c := &s.conns[int(io.core)*len(s.paths)+int(io.path)]
	at := max(s.now, c.still)
	if p.Loss > 0 {
		for n := int(io.bytes)/packet + 1; n > 0; n-- {
			if s.rng.Float64() >= p.Loss {
				continue
			}
			stall := p.Quick
			if s.rng.Float64() < p.Late {
				stall = p.Stall
			}
			at += int64(stall)
			break
		}
		c.still = at
	}
	if at > s.now {
		s.agenda.push(at, enterLink, i)
		return
	}
	s.link(i)
}

// link is where I/Os of all cores wait for one another.
func (s *sim) link(i int32) {
	io := &s.ios[i]
	p := &s.paths[io.path]
	out := s.now
	if p.Rate > 0 {
		free := &p.link[io.dir&1]
		*free = max(*free, s.now) + int64(float64(int(io.bytes)+p.Header)*1e9/p.Rate)
		out = *free
	}
	out += int64(p.Delay)
	if p.Jitter > 0 {
		out += s.exponential(float64(p.Jitter))
	}
	c := &s.conns[int(io.core)*len(s.paths)+int(io.path)]
	last := &c.delivered[io.dir&1]
	out = max(out, *last)
	*last = out
	if p.Servers > 0 {
		s.agenda.push(out, enterServer, i)
		return
	}
	s.agenda.push(out, completed, i)
}

// serve is the far end: the server that is free first takes the I/O.
func (s *sim) serve(i int32) {
	io := &s.ios[i]
	p := &s.paths[io.path]
	if len(p.servers) == 0 { // changed meanwhile
		s.agenda.push(s.now, completed, i)
		return
	}
	first := 0
	for j := range p.servers {
		if p.servers[j] < p.servers[first] {
			first = j
		}
	}
	takes := int64(p.Service)
	if p.Spread {
		takes = s.exponential(float64(p.Service))
	}
	if p.Disk > 0 {
		takes += int64(float64(io.bytes) * 1e9 / p.Disk)
	}
	p.servers[first] = max(p.servers[first], s.now) + takes
	s.agenda.push(p.servers[first], completed, i)
}

func (s *sim) complete(i int32) {
	io := &s.ios[i]
	set := s.sets[io.core]
	set.Complete(&io.ticket, s.now, true)
	s.result.completed(io, s.now, s.now >= s.warm)
	if s.sc.Arrive > 0 {
		s.free = append(s.free, i)
		if set.Total() == 0 {
			set.Idle(s.now)
		}
		return
	}
	s.submit(i)
}

// size draws the size of an I/O.
func (s *sim) size() uint32 {
	if len(s.sc.Mix) == 1 {
		return s.sc.Mix[0].Bytes
	}
	var sum float64
	for _, m := range s.sc.Mix {
		sum += m.Share
	}
	x := s.rng.Float64() * sum
	for _, m := range s.sc.Mix {
		if x -= m.Share; x < 0 {
			return m.Bytes
		}
	}
	return s.sc.Mix[len(s.sc.Mix)-1].Bytes
}
