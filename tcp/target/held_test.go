package target_test

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

func abort(sqid, cid uint16) nvme.Command {
	return nvme.AbortCommand{SQID: sqid, CID: cid}.Command()
}

// TestAbort aborts commands wherever they may be, on one poller and on two.
func TestAbort(t *testing.T) {
	for _, pollers := range []int{1, 2} {
		stall := backend.NewStall(backend.NewHeap(1 << 20))
		l := newLabOn(t, oneNamespace(stall), pollers)
		admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
		stall.Stop()
		first := q.post(read(0, 1), nil, 512)
		second := q.post(write(0, 1), pattern(1, 512), 0)
		third := q.post(write(0, 16), nil, 8192) // waits for data
		r := *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
		do := func(cid, sqid uint16, want nvme.Status) uint64 {
			t.Helper()
			cpl := admin.do(abort(sqid, cid), nil)
			admin.is(cpl, want)
			return cpl.Result & 1
		}
		if do(second, 1, 0) != 0 {
			t.Error("a held write was not aborted")
		}
		if cpl := q.is(q.completion(), nvme.StatusAbortRequested); cpl.CID != second {
			t.Errorf("response to %d", cpl.CID)
		}
		for _, c := range [][2]uint16{{third, 1}, {second, 1}, {77, 1}, {first, 2}, {first, 0}} {
			if do(c[0], c[1], 0) != 1 {
				t.Errorf("command %d of queue %d was aborted", c[0], c[1])
			}
		}
		aer := admin.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
		cid := admin.post(abort(0, aer), nil, 0)
		if cpl := admin.is(admin.completion(), nvme.StatusAbortRequested); cpl.CID != aer {
			t.Errorf("response to %d", cpl.CID)
		}
		if cpl := admin.ok(admin.completion()); cpl.CID != cid || cpl.Result&1 != 0 {
			t.Errorf("response %+v", cpl)
		}
		q.answer(r.CCCID(), r.TTAG(), 0, pattern(2, 8192))
		stall.Resume()
		got, cpl := q.collect(first, 512)
		q.ok(cpl)
		same(t, "read", got, make([]byte, 512))
		q.ok(q.completion())
		got, cpl = q.in(read(0, 16), 8192)
		q.ok(cpl)
		same(t, "what was not aborted", got, pattern(2, 8192))
	}
}

// TestLatency delays commands, each by itself.
func TestLatency(t *testing.T) {
	slow := backend.NewLatency(backend.NewHeap(1<<20), 3*time.Millisecond)
	l := newLab(t, oneNamespace(slow))
	_, q := l.io(connectOptions{}, pdu.ICReqFields{})
	q.post(write(0, 8), pattern(1, 4096), 0)
	l.advance(time.Microsecond)
	q.post(write(8, 8), pattern(2, 4096), 0)
	begin := l.now
	q.ok(q.completion())
	q.ok(q.completion())
	if d := time.Duration(l.now - begin); d < 3*time.Millisecond || d > 3100*time.Microsecond {
		t.Errorf("both took %v", d)
	}
	slow.Set(0)
	got, cpl := q.in(read(0, 16), 8192)
	q.ok(cpl)
	same(t, "data", got, append(pattern(1, 4096), pattern(2, 4096)...))
}

// TestQuiesceTime ends a connection with writes held in the backend: they are
// given up at once, or go on for the quiesce time that is reported.
func TestQuiesceTime(t *testing.T) {
	for _, c := range []struct {
		quiesce, delay time.Duration
		written        bool
	}{
		{0, 100 * time.Millisecond, false},
		{time.Second, 100 * time.Millisecond, true},
		{time.Second, 2 * time.Second, false},
	} {
		slow := backend.NewLatency(backend.NewHeap(1<<20), c.delay)
		cfg := oneNamespace(slow)
		cfg.Subsystems[0].QuiesceTime = c.quiesce
		l := newLab(t, cfg)
		_, q := l.io(connectOptions{}, pdu.ICReqFields{})
		q.post(write(0, 1), pattern(9, 512), 0)
		for range 10 {
			l.step()
		}
		q.close()
		l.await("the queue is gone", func() bool { return l.subsystem().Stats().Queues == 0 })
		for range 30 {
			l.advance(100 * time.Millisecond)
		}
		slow.Set(0)
		_, q = l.io(connectOptions{}, pdu.ICReqFields{})
		got, cpl := q.in(read(0, 1), 512)
		q.ok(cpl)
		want := make([]byte, 512)
		if c.written {
			want = pattern(9, 512)
		}
		same(t, "data", got, want)
	}
}

// TestRemoveInFlight removes a namespace with commands under way, whose backend
// is closed after the last of them.
func TestRemoveInFlight(t *testing.T) {
	stall := backend.NewStall(backend.NewHeap(1 << 20))
	closed := make(chan struct{})
	l := newLab(t, oneNamespace(&closing{stall, closed}))
	_, q := l.io(connectOptions{}, pdu.ICReqFields{})
	stall.Stop()
	held := q.post(read(0, 1), nil, 512)
	for range 10 {
		l.step()
	}
	l.subsystem().Namespace(1).Remove()
	_, cpl := q.in(read(0, 1), 512)
	q.is(cpl, nvme.StatusInvalidNamespace|dnr)
	select {
	case <-closed:
		t.Fatal("closed while a command is under way")
	default:
	}
	stall.Resume()
	_, cpl = q.collect(held, 512)
	q.ok(cpl)
	l.step()
	<-closed
}

// closing is a backend that tells when it is closed.
type closing struct {
	backend.Backend
	closed chan struct{}
}

func (c *closing) Close() error {
	close(c.closed)
	return c.Backend.Close()
}

// TestSharedBackend gives one backend to two namespaces.
func TestSharedBackend(t *testing.T) {
	closed := make(chan struct{})
	b := &closing{backend.NewHeap(1 << 20), closed}
	cfg := oneNamespace(b)
	cfg.Subsystems = append(cfg.Subsystems, target.SubsystemConfig{
		NQN: nqn + "2", Namespaces: []target.NamespaceConfig{{Backend: b}},
	})
	l := newLab(t, cfg)
	_, q := l.io(connectOptions{}, pdu.ICReqFields{})
	q.ok(q.do(write(0, 1), pattern(5, 512)))
	admin := l.admin(connectOptions{nqn: nqn + "2"})
	other := admin.queue(connectOptions{nqn: nqn + "2"}, pdu.ICReqFields{})
	got, _ := other.in(read(0, 1), 512)
	same(t, "data", got, pattern(5, 512))
	must(t, l.target.RemoveSubsystem(nqn))
	q.closed()
	l.step()
	select {
	case <-closed:
		t.Fatal("closed while another namespace has it")
	default:
	}
	must(t, l.target.RemoveSubsystem(nqn+"2"))
	other.closed()
	l.step()
	<-closed
	if err := l.target.RemoveSubsystem(nqn); err == nil {
		t.Error("removed twice")
	}
}

// TestStarvation has commands wait for memory.
func TestStarvation(t *testing.T) {
	stall := backend.NewStall(backend.NewHeap(16 << 20))
	cfg := oneNamespace(stall)
	cfg.Limits.ConnectionBuffers = 4 << 20 // four commands
	l := newLab(t, cfg)
	_, q := l.io(connectOptions{}, pdu.ICReqFields{})
	var tags []pdu.R2T
	for i := range uint64(6) {
		q.post(write(i*2048, 2048), nil, 1<<20)
	}
	for range 4 {
		tags = append(tags, *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header))
	}
	data := pattern(1, 1<<20)
	q.answer(tags[0].CCCID(), tags[0].TTAG(), 0, data)
	q.ok(q.completion())
	r := *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
	if r.CCCID() != tags[3].CCCID()+1 {
		t.Errorf("R2T for command %d", r.CCCID())
	}
	tags = append(tags[1:], r)
	q.answer(tags[0].CCCID(), tags[0].TTAG(), 0, data)
	q.ok(q.completion())
	tags = append(tags[1:], *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header))
	for _, r := range tags {
		q.answer(r.CCCID(), r.TTAG(), 0, data)
		q.ok(q.completion())
	}
	for i := range uint64(6) {
		got, cpl := q.in(read(i*2048, 2048), 1<<20)
		q.ok(cpl)
		same(t, "data", got, data)
	}
}

// TestAbortStarved aborts a command that waits for memory, and closes a
// connection that has more of them.
func TestAbortStarved(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(16 << 20))
	cfg.Limits.ConnectionBuffers = 4 << 20
	l := newLab(t, cfg)
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	var last uint16
	for range 7 {
		last = q.post(write(0, 2048), nil, 1<<20)
	}
	for range 4 {
		q.nextOf(pdu.TypeR2T)
	}
	if cpl := admin.ok(admin.do(abort(1, last-1), nil)); cpl.Result&1 != 0 {
		t.Error("not aborted")
	}
	if cpl := q.is(q.completion(), nvme.StatusAbortRequested); cpl.CID != last-1 {
		t.Errorf("response to %d", cpl.CID)
	}
	q.close()
	q = admin.queue(connectOptions{qid: 2}, pdu.ICReqFields{})
	q.ok(q.out(write(0, 2048), pattern(1, 1<<20)))
}

// TestFused executes Compare and Write as one.
func TestFused(t *testing.T) {
	half := func(fuse uint8, c nvme.Command) nvme.Command { c.Flags |= fuse; return c }
	first := func(lba uint64) nvme.Command { return half(nvme.FlagFuseFirst, rw(nvme.OpCompare, lba, 1)) }
	second := func(lba uint64) nvme.Command { return half(nvme.FlagFuseSecond, write(lba, 1)) }
	heap := backend.NewHeap(1 << 20)
	stall := backend.NewStall(heap)
	_, q := newLab(t, oneNamespace(stall)).io(connectOptions{}, pdu.ICReqFields{DDGST: true})
	zero, one, two := make([]byte, 512), pattern(1, 512), pattern(2, 512)
	// both sends two commands and receives two responses.
	both := func(what string, a, b nvme.Command, x, y []byte, wantA, wantB nvme.Status) {
		t.Helper()
		cidA := q.post(a, x, 0)
		cidB := q.post(b, y, 0)
		got := map[uint16]nvme.Status{}
		for range 2 {
			cpl := q.completion()
			got[cpl.CID] = cpl.Status()
		}
		if got[cidA] != wantA || got[cidB] != wantB {
			t.Errorf("%s: %v and %v, want %v and %v", what, got[cidA], got[cidB], wantA, wantB)
		}
	}
	check := func(want []byte) {
		t.Helper()
		got, cpl := q.in(read(3, 1), 512)
		q.ok(cpl)
		same(t, "data", got, want)
	}
	both("equal", first(3), second(3), zero, one, 0, 0)
	check(one)
	both("different", first(3), second(3), zero, two, nvme.StatusCompareFailure, nvme.StatusAbortedFailedFused)
	check(one)
	both("no second half", first(3), write(9, 1), one, two, nvme.StatusAbortedMissingFused, 0)
	cids := [3]uint16{q.post(first(3), one, 0), q.post(first(3), one, 0), q.post(second(3), two, 0)}
	got := map[uint16]nvme.Status{}
	for range cids {
		cpl := q.completion()
		got[cpl.CID] = cpl.Status()
	}
	if got[cids[0]] != nvme.StatusAbortedMissingFused || got[cids[1]] != 0 || got[cids[2]] != 0 {
		t.Errorf("two first halves: %v", got)
	}
	check(two)
	both("no first half", second(3), write(9, 1), two, one, nvme.StatusAbortedMissingFused, 0)
	both("another range", first(3), second(4), two, one, nvme.StatusAbortedFailedFused, nvme.StatusInvalidField|dnr)
	both("beyond the end", first(1<<20), second(1<<20), two, one, nvme.StatusLBAOutOfRange|dnr, nvme.StatusAbortedFailedFused)
	both("no compare", half(nvme.FlagFuseFirst, write(3, 1)), second(3), one, one, nvme.StatusInvalidField|dnr, nvme.StatusAbortedFailedFused)
	both("reserved", half(nvme.FlagFuseMask, write(3, 1)), write(9, 1), one, one, nvme.StatusInvalidField|dnr, 0)
	check(two)

	// Both halves by R2T, their data in either order.
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		old, young := pattern(byte(2+order[0]), 512), pattern(3-byte(order[0]), 512)
		_, cpl := q.in(read(3, 1), 512)
		q.ok(cpl)
		q.ok(q.do(write(3, 1), old))
		q.post(first(3), nil, 512)
		q.post(second(3), nil, 512)
		var tags [2]pdu.R2T
		for i := range tags {
			tags[i] = *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
		}
		data := [2][]byte{old, young}
		for _, i := range order {
			q.answer(tags[i].CCCID(), tags[i].TTAG(), 0, data[i])
		}
		q.ok(q.completion())
		q.ok(q.completion())
		check(young)
	}

	// One half is damaged on its way.
	now, cpl := q.in(read(3, 1), 512)
	q.ok(cpl)
	for _, damaged := range []int{0, 1} {
		var b []byte
		for i, cmd := range []nvme.Command{first(3), second(3)} {
			cmd.SetSGL(nvme.SGLInCapsule(0, 512))
			cmd.Flags |= uint8(i + 1)
			c := q.capsule(&cmd, now)
			if i == damaged {
				c[len(c)-1] ^= 1
			}
			b = append(b, c...)
		}
		q.send(b)
		got := map[nvme.Status]int{}
		for range 2 {
			cpl := q.completion()
			got[cpl.Status()]++
		}
		if got[nvme.StatusTransientTransportError] != 1 || got[0] != 0 {
			t.Errorf("statuses %v", got)
		}
	}
	q.ok(q.do(rw(nvme.OpFlush, 0, 1), nil))

	// Held in the backend, and given up with the connection.
	stall.Stop()
	q.post(first(3), now, 0)
	q.post(second(3), one, 0)
	q.l.await("the operation is held", func() bool { return stall.Waiting() == 1 })
	q.close()
	q.l.await("it is given up", func() bool { return stall.Waiting() == 0 })
	stall.Resume()
}

func TestNoFused(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Subsystems[0].NoFused = true
	_, q := newLab(t, cfg).io(connectOptions{}, pdu.ICReqFields{})
	cmd := rw(nvme.OpCompare, 0, 1)
	cmd.Flags = nvme.FlagFuseFirst
	q.is(q.do(cmd, make([]byte, 512)), nvme.StatusInvalidField|dnr)
	q.ok(q.do(write(0, 1), make([]byte, 512)))
}
