package pcie_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/pcietest"
	"github.com/qpoll/qpoll/poller"
)

// rig is the driver on the software controller.
type rig struct {
	t testing.TB
	s *pcietest.Controller
	c *nvme.Controller
	p *poller.Poller
}

func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func software(t testing.TB, cfg pcietest.Config) *pcietest.Controller {
	t.Helper()
	s, err := pcietest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Close() })
	return s
}

func adaptive(t testing.TB) *poller.Poller {
	t.Helper()
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func open(t testing.TB, s *pcietest.Controller, cfg pcie.Config, ncfg nvme.Config) (*rig, error) {
	t.Helper()
	r := &rig{t: t, s: s, p: adaptive(t)}
	ncfg.Poller = r.p
	if ncfg.ReconnectDelay == 0 {
		ncfg.ReconnectDelay = time.Millisecond
	}
	tr, err := pcie.New(s.Device(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.c, err = nvme.NewController(limit(t), tr, &ncfg); err != nil {
		return nil, err
	}
	t.Cleanup(func() { r.c.Close(limit(t)) })
	return r, nil
}

func newRig(t testing.TB, scfg pcietest.Config, cfg pcie.Config, ncfg nvme.Config) *rig {
	t.Helper()
	r, err := open(t, software(t, scfg), cfg, ncfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) queue(size int) *nvme.NamespaceQueue {
	r.t.Helper()
	qp, err := r.c.OpenQueue(limit(r.t), r.p, nvme.QueueConfig{Size: size})
	if err != nil {
		r.t.Fatal(err)
	}
	q, err := qp.Bind(r.namespace())
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

func (r *rig) namespace() *nvme.Namespace {
	r.t.Helper()
	ns, err := r.c.Namespace(limit(r.t), 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return ns
}

// mover reads or writes block by block, count of them with depth in flight, and
// is told of none twice.
type mover struct {
	q     *nvme.NamespaceQueue
	buf   [][]byte
	write bool
	next  int
	done  int
	ended chan nvme.Status
	slots []moverSlot
}

type moverSlot struct {
	m  *mover
	at int
}

func (m *mover) start(depth int) {
	m.slots = make([]moverSlot, depth)
	for i := range m.slots {
		m.slots[i].m = m
		m.slots[i].post()
	}
}

func (s *moverSlot) post() {
	m := s.m
	if m.next == len(m.buf) {
		return
	}
	s.at = m.next
	m.next++
	b := m.buf[s.at]
	lba, n := uint64(s.at)*uint64(len(b))/512, uint32(len(b)/512)
	var err error
	if m.write {
		err = m.q.Write(b, lba, n, moved, s)
	} else {
		err = m.q.Read(b, lba, n, moved, s)
	}
	if err != nil {
		panic(err)
	}
}

func moved(arg any, st nvme.Status) {
	s := arg.(*moverSlot)
	if !st.OK() {
		select {
		case s.m.ended <- st:
		default:
		}
	}
	if s.m.done++; s.m.done == len(s.m.buf) {
		select {
		case s.m.ended <- 0:
		default:
		}
	}
	s.post()
}

// move transfers all of buf, piece by piece.
func (r *rig) move(q *nvme.NamespaceQueue, write bool, buf [][]byte, depth int) nvme.Status {
	r.t.Helper()
	m := &mover{q: q, buf: buf, write: write, ended: make(chan nvme.Status, 1)}
	if err := r.p.Call(limit(r.t), func() { m.start(min(depth, len(buf))) }); err != nil {
		r.t.Fatal(err)
	}
	select {
	case st := <-m.ended:
		return st
	case <-limit(r.t).Done():
		r.t.Fatal("no end")
		return 0
	}
}

// verify writes and reads back n pieces of size bytes from memory of the kind.
func (r *rig) verify(q *nvme.NamespaceQueue, n, size, depth int, registered bool) {
	r.t.Helper()
	mem := make([]byte, n*size)
	if registered {
		var err error
		if mem, err = r.c.Alloc(n * size); err != nil {
			r.t.Fatal(err)
		}
		defer r.c.Free(mem)
	}
	want := make([]byte, n*size)
	rng := rand.New(rand.NewPCG(uint64(n), uint64(size)))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	copy(mem, want)
	var pieces [][]byte
	for i := range n {
		pieces = append(pieces, mem[i*size:][:size:size])
	}
	if st := r.move(q, true, pieces, depth); !st.OK() {
		r.t.Fatal(st)
	}
	clear(mem)
	if st := r.move(q, false, pieces, depth); !st.OK() {
		r.t.Fatal(st)
	}
	if !bytes.Equal(mem, want) {
		r.t.Fatalf("%d pieces of %d bytes at depth %d: wrong data", n, size, depth)
	}
}

// What controllers differ in, and what can be chosen: data survives all of it.
func TestSoftwareController(t *testing.T) {
	cmb := pcietest.CMBConfig{Size: 8 << 20}
	for name, c := range map[string]struct {
		s    pcietest.Config
		c    pcie.Config
		n    nvme.Config
		size int
	}{
		"default":             {},
		"PRP":                 {s: pcietest.Config{NoSGL: true, NoShadow: true}},
		"SGL":                 {c: pcie.Config{SGL: pcie.SGLAlways}},
		"shadow notify":       {s: pcietest.Config{ShadowNotify: true}},
		"no shadow":           {c: pcie.Config{NoShadowDoorbells: true}},
		"eager":               {c: pcie.Config{EagerCQ: true}},
		"interrupts":          {c: pcie.Config{Interrupts: true}},
		"few vectors":         {c: pcie.Config{Interrupts: true}, s: pcietest.Config{Interrupts: 1}},
		"weighted":            {c: pcie.Config{Arbitration: &pcie.Arbitration{}}, s: pcietest.Config{Weighted: true}},
		"not weighted":        {c: pcie.Config{Arbitration: &pcie.Arbitration{}}},
		"CMB queues":          {c: pcie.Config{CMB: pcie.CMBQueues}, s: pcietest.Config{CMB: cmb}},
		"CMB data":            {c: pcie.Config{CMB: pcie.CMBQueues | pcie.CMBData}, s: pcietest.Config{CMB: cmb}},
		"small CMB":           {c: pcie.Config{CMB: pcie.CMBQueues | pcie.CMBData}, s: pcietest.Config{CMB: pcietest.CMBConfig{Size: 8192}}},
		"CMB for nothing":     {c: pcie.Config{CMB: pcie.CMBQueues | pcie.CMBData}, s: pcietest.Config{CMB: pcietest.CMBConfig{Size: 1 << 20, NoSQ: true, NoReads: true}}},
		"no CMB":              {c: pcie.Config{CMB: pcie.CMBQueues}},
		"stride":              {s: pcietest.Config{DoorbellStride: 4}},
		"two entries":         {s: pcietest.Config{QueueEntries: 2}},
		"largest queue":       {s: pcietest.Config{QueueEntries: 4096}, size: 4096},
		"small arenas":        {c: pcie.Config{ArenaSize: 2 << 20, NoHugePages: true}},
		"large transfers":     {c: pcie.Config{MaxTransfer: 8 << 20}, s: pcietest.Config{MaxTransfer: 16 << 20, NoSGL: true}},
		"8 KiB transfers":     {s: pcietest.Config{MaxTransfer: 8192}},
		"no interrupts there": {c: pcie.Config{Interrupts: true}, s: pcietest.Config{Interrupts: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.s, c.c, c.n)
			if c.size == 0 {
				c.size = 64
			}
			q := r.queue(c.size)
			depth := min(q.QueuePair().Size()-1, 100)
			for _, registered := range []bool{true, false} {
				r.verify(q, 300, 512, depth, registered)
				r.verify(q, 40, 12288, depth, registered)
				r.verify(q, 2, 5<<20+512, 2, registered)
			}
			r.healthy()
		})
	}
}

// healthy fails the test if the controller has seen what it should not.
func (r *rig) healthy() {
	r.t.Helper()
	if f := r.s.Faults(); len(f) != 0 {
		r.t.Errorf("faults: %v", f)
	}
	if st := r.s.Stats(); st.BadDoorbells != 0 {
		r.t.Errorf("%d bad doorbells", st.BadDoorbells)
	}
}

// Queue identifiers are used again, doorbells of the one before notwithstanding
// (wire case 17), and memory of queues that are closed is too.
func TestQueuesAgain(t *testing.T) {
	for _, notify := range []bool{false, true} {
		r := newRig(t, pcietest.Config{ShadowNotify: notify}, pcie.Config{}, nvme.Config{IOQueues: 4})
		for range 20 {
			a, b := r.queue(32), r.queue(7)
			r.verify(a, 50, 4096, 31, true)
			r.verify(b, 50, 4096, 6, false)
			for _, q := range []*nvme.NamespaceQueue{a, b} {
				if err := q.QueuePair().Close(limit(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.healthy()
	}
}

// More queues than the doorbells of one page are for (wire case 18).
func TestManyQueues(t *testing.T) {
	r := newRig(t, pcietest.Config{IOQueues: 600}, pcie.Config{MaxTransfer: 128 << 10}, nvme.Config{IOQueues: 600})
	var last *nvme.NamespaceQueue
	for i := range 520 {
		last = r.queue(4)
		if i%100 == 0 {
			r.verify(last, 10, 4096, 3, true)
		}
	}
	if id := last.QueuePair().ID(); id < 512 {
		t.Fatalf("queue %d", id)
	}
	r.verify(last, 30, 4096, 3, true)
	r.healthy()
}

// Completions that cannot be right fail the queue, are counted and told, and
// nothing else happens: the commands are sent again (wire case 19).
func TestBadCompletions(t *testing.T) {
	for name, rule := range map[string]pcietest.Rule{
		"CID beyond":   {Action: pcietest.WrongCID, Value: 0xfffe},
		"unused CID":   {Action: pcietest.WrongCID, Value: 60},
		"other SQ":     {Action: pcietest.WrongSQID, Value: 9},
		"admin SQ":     {Action: pcietest.WrongSQID, Value: 0},
		"twice":        {Action: pcietest.Duplicate},
		"wrong, later": {Action: pcietest.WrongCID, Value: 0x7fff, Skip: 40},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan error, 100)
			r := newRig(t, pcietest.Config{}, pcie.Config{}, nvme.Config{Events: &nvme.Events{
				Queue: func(_ *nvme.Controller, _ uint16, err error) { told <- err },
			}})
			q := r.queue(64)
			rule.Count = 1
			i := r.s.Inject(rule)
			r.verify(q, 100, 4096, 32, true)
			if i.Hits() != 1 {
				t.Fatal("nothing went wrong")
			}
			for {
				err := <-told
				if err == nil {
					continue
				}
				var bad *pcie.CompletionError
				if !errors.As(err, &bad) || !errors.Is(err, nvme.ErrProtocol) {
					t.Fatal(err)
				}
				break
			}
			r.healthy()
		})
	}
}

// A controller that loses a command, or its completion, is asked to abort it,
// then reset; nothing is lost.
func TestSilentCommands(t *testing.T) {
	for _, a := range []pcietest.Action{pcietest.Drop, pcietest.Mute, pcietest.StuckPhase, pcietest.Hold} {
		t.Run(fmt.Sprint(a), func(t *testing.T) {
			r := newRig(t, pcietest.Config{}, pcie.Config{}, nvme.Config{IOTimeout: time.Second})
			q := r.queue(32)
			r.s.Inject(pcietest.Rule{Action: a, Count: 1, Skip: 5})
			buf := make([][]byte, 20)
			for i := range buf {
				buf[i] = make([]byte, 512)
			}
			// An abort that worked is a status; all else is well in the end.
			if st := r.move(q, false, buf, 8); !st.OK() && st.Code() != nvme.StatusAbortRequested {
				t.Fatal(st)
			}
			r.verify(q, 20, 512, 8, true)
		})
	}
}

// A controller that fails is reset, and work goes on.
func TestFatal(t *testing.T) {
	r := newRig(t, pcietest.Config{}, pcie.Config{}, nvme.Config{IOTimeout: time.Second, AdminTimeout: 5 * time.Second})
	q := r.queue(32)
	r.s.Inject(pcietest.Rule{Action: pcietest.Die, Count: 1, Skip: 30})
	r.verify(q, 100, 4096, 16, true)
}

// A controller that neither completes nor gets disabled is reset by the bus.
func TestDeafController(t *testing.T) {
	r := newRig(t, pcietest.Config{Timeout: 500 * time.Millisecond}, pcie.Config{}, nvme.Config{IOTimeout: 100 * time.Millisecond})
	q := r.queue(32)
	r.s.SetReadyTime(-1)
	i := r.s.Inject(pcietest.Rule{Action: pcietest.Drop, Count: 1})
	go func() { // it gets well once it has been reset
		for r.s.Stats().Resets == 0 || i.Hits() == 0 {
			time.Sleep(time.Millisecond)
		}
		r.s.SetReadyTime(0)
	}()
	r.verify(q, 10, 4096, 4, true)
}

// Removal: everything fails with a typed error, nothing hangs (wire case 20).
func TestRemoved(t *testing.T) {
	for name, leave := range map[string]func(s *pcietest.Controller){
		"told": func(s *pcietest.Controller) { s.Remove() },
		"all ones": func(s *pcietest.Controller) {
			s.Vanish(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var states atomic.Int64
			r := newRig(t, pcietest.Config{}, pcie.Config{}, nvme.Config{
				IOTimeout: 100 * time.Millisecond, CtrlLossTimeout: 300 * time.Millisecond,
				Events: &nvme.Events{State: func(*nvme.Controller, nvme.State, nvme.State, error) { states.Add(1) }},
			})
			q := r.queue(32)
			r.s.Inject(pcietest.Rule{Action: pcietest.Hold})
			buf := make([][]byte, 20)
			for i := range buf {
				buf[i] = make([]byte, 512)
			}
			m := &mover{q: q, buf: buf, ended: make(chan nvme.Status, 1)}
			if err := r.p.Call(limit(t), func() { m.start(20) }); err != nil {
				t.Fatal(err)
			}
			leave(r.s)
			select {
			case st := <-m.ended:
				if st.OK() || !st.IsPath() {
					t.Error(st)
				}
			case <-limit(t).Done():
				t.Fatal("commands hang")
			}
			_, err := r.namespace().ReadAt(make([]byte, 512), 0)
			if err == nil || name == "told" && !errors.Is(err, pcie.ErrGone) {
				t.Error(err)
			}
			if err := r.c.Close(limit(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Register values that make no sense, or are at the ends of their ranges, end
// in a controller that works or in an error, in bounded time (wire case 16).
func TestRegisters(t *testing.T) {
	capp := nvme.CAPFields{MQES: 1023, CQR: true, TO: 500 * time.Millisecond, CSS: nvme.CAPCSSNVM, MPSMAX: 4}
	with := func(f func(*nvme.CAPFields)) uint64 {
		c := capp
		f(&c)
		return uint64(c.CAP())
	}
	for name, c := range map[string]struct {
		reg  uint32
		v    uint64
		ok   bool
		want error
	}{
		"CAP.TO 0":           {nvme.RegCAP, with(func(c *nvme.CAPFields) { c.TO = 0 }), true, nil},
		"CAP.MQES 1":         {nvme.RegCAP, with(func(c *nvme.CAPFields) { c.MQES = 1 }), true, nil},
		"CAP.MQES 0":         {nvme.RegCAP, with(func(c *nvme.CAPFields) { c.MQES = 0 }), false, nvme.ErrProtocol},
		"CAP.MPSMIN 1":       {nvme.RegCAP, with(func(c *nvme.CAPFields) { c.MPSMIN = 1 }), false, nvme.ErrUnsupported},
		"CAP of ones":        {nvme.RegCAP, ^uint64(0), false, nvme.ErrFatal},
		"stride beyond":      {nvme.RegCAP, with(func(c *nvme.CAPFields) { c.DSTRD = 15 }), false, nvme.ErrProtocol},
		"CSTS of ones":       {nvme.RegCSTS, 0xffffffff, false, nvme.ErrFatal},
		"never ready":        {nvme.RegCSTS, 0, false, nvme.ErrTimeout},
		"CSTS.CFS":           {nvme.RegCSTS, 2, false, nvme.ErrFatal},
		"always ready":       {nvme.RegCSTS, 1, false, nvme.ErrTimeout},
		"CC reads as enable": {nvme.RegCC, 1, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := software(t, pcietest.Config{Timeout: 500 * time.Millisecond})
			s.Override(c.reg, c.v)
			r, err := open(t, s, pcie.Config{}, nvme.Config{ConnectTimeout: 5 * time.Second})
			switch {
			case c.ok && err != nil:
				t.Fatal(err)
			case c.ok:
				r.verify(r.queue(8), 10, 4096, 1, true)
			case c.want != nil && !errors.Is(err, c.want):
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// A sleeping poller is woken by interrupts, with as many passes as there is to
// do, and not by looking again and again.
func TestInterruptsWake(t *testing.T) {
	r := newRig(t, pcietest.Config{}, pcie.Config{Interrupts: true}, nvme.Config{})
	q := r.queue(32)
	before := r.s.Stats().Interrupts
	hold := r.s.Inject(pcietest.Rule{Action: pcietest.Delay, Delay: 5 * time.Millisecond})
	for range 5 {
		r.verify(q, 2, 512, 1, true)
	}
	if hold.Hits() == 0 || r.s.Stats().Interrupts == before {
		t.Errorf("%d commands delayed, %d interrupts", hold.Hits(), r.s.Stats().Interrupts-before)
	}
}

// Registered memory is used where it is; after Unregister, it is copied.
func TestRegister(t *testing.T) {
	r := newRig(t, pcietest.Config{}, pcie.Config{}, nvme.Config{})
	b, err := r.c.Alloc(8192)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.c.Register(b, -1, 0); !errors.Is(err, pcie.ErrMemory) {
		t.Errorf("registered twice: %v", err)
	}
	if err := r.c.Register(make([]byte, 100), -1, 0); !errors.Is(err, pcie.ErrMemory) {
		t.Errorf("not whole pages: %v", err)
	}
	if err := r.c.Unregister(b); !errors.Is(err, pcie.ErrMemory) {
		t.Errorf("not registered: %v", err)
	}
	if err := r.c.Free(b); err != nil {
		t.Error(err)
	}
	if _, err := r.c.Alloc(0); !errors.Is(err, nvme.ErrLength) {
		t.Error(err)
	}
}
