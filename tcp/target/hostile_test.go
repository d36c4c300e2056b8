package target_test

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// ioQueue returns an I/O queue of a target of its own.
func ioQueue(t *testing.T, cfg target.Config, f pdu.ICReqFields) *host {
	admin, q := newLab(t, cfg).io(connectOptions{}, f)
	t.Cleanup(admin.close)
	return q
}

func checkBadIO(t *testing.T, c badPDU, f pdu.ICReqFields) {
	t.Run(c.name, func(t *testing.T) {
		q := ioQueue(t, oneNamespace(backend.NewHeap(1<<20)), f)
		q.send(c.bytes)
		e := q.terminated()
		if e.FES != c.fes || e.FEI != c.fei {
			t.Errorf("FES %v, FEI %#x, want %v, %#x", e.FES, e.FEI, c.fes, c.fei)
		}
		same(t, "offending header", e.Header, c.bytes[:c.head])
		q.close()
		q.l.await("the connection is forgotten", func() bool { all, _ := q.l.target.Connections(); return all == 1 })
	})
}

// TestBadPDU sends PDUs on an I/O queue that no host may send.
func TestBadPDU(t *testing.T) {
	p := pdu.Params{MaxH2CData: 1 << 20}
	cmdLayout, dataLayout, respLayout := p.Layout(pdu.TypeCapsuleCmd), p.Layout(pdu.TypeH2CData), p.Layout(pdu.TypeCapsuleResp)
	cmd := read(0, 1)
	cmd.SetSGL(nvme.SGLTransport(512))
	bare := pdu.AppendCapsuleCmd(nil, &cmdLayout, &cmd, nil)
	full := pdu.AppendCapsuleCmd(nil, &cmdLayout, &cmd, make([]byte, 512))
	h2c := pdu.AppendH2CData(nil, &dataLayout, pdu.LastPDU, pdu.H2CDataFields{}, make([]byte, 512))
	for _, c := range []badPDU{
		{"unknown type", set(bare, 0, 0x0a), pdu.FESInvalidHeaderField, 0, 8},
		{"response", pdu.AppendCapsuleResp(nil, &respLayout, &nvme.Completion{}), pdu.FESInvalidHeaderField, 0, 24},
		{"second ICReq", pdu.AppendICReq(nil, pdu.ICReqFields{}), pdu.FESSequenceError, 0, 128},
		{"header digest", set(bare, 1, byte(pdu.HDGSTF)), pdu.FESInvalidHeaderField, 1, 72},
		{"data digest", set(full, 1, byte(pdu.DDGSTF)), pdu.FESInvalidHeaderField, 1, 72},
		{"HLEN", set(bare, 2, 64), pdu.FESInvalidHeaderField, 2, 72},
		{"PDO inside of the header", set(full, 3, 68), pdu.FESInvalidHeaderField, 3, 72},
		{"PLEN below the header", set(bare, 4, 71), pdu.FESInvalidHeaderField, 4, 72},
		{"PLEN beyond the capsule", set(bare, 4, 0, 0, 0, 0x10), pdu.FESInvalidHeaderField, 3, 72},
		{"H2CData without data", set(h2c[:24], 4, 24, 0), pdu.FESInvalidHeaderField, 4, 24},
		{"H2CData with another length", set(h2c, 16, 1), pdu.FESInvalidHeaderField, 16, 24},
		{"H2CData for no R2T", h2c, pdu.FESInvalidHeaderField, 10, 24},
		{"H2CData with a far tag", set(h2c, 10, 0xff, 0xff), pdu.FESInvalidHeaderField, 10, 24},
	} {
		checkBadIO(t, c, pdu.ICReqFields{})
	}
	p.HDGST = true
	cmdLayout = p.Layout(pdu.TypeCapsuleCmd)
	bare = pdu.AppendCapsuleCmd(nil, &cmdLayout, &cmd, nil)
	digest := uint32(bare[72]) | uint32(bare[73])<<8 | uint32(bare[74])<<16 | uint32(bare[75])<<24
	checkBadIO(t, badPDU{"wrong header digest", set(bare, 20, 0x55), pdu.FESHeaderDigestError, digest, 72}, pdu.ICReqFields{HDGST: true})
	checkBadIO(t, badPDU{"no header digest", set(bare, 1, 0), pdu.FESInvalidHeaderField, 1, 72}, pdu.ICReqFields{HDGST: true})
}

// TestBadData answers an R2T in ways that no host may.
func TestBadData(t *testing.T) {
	for _, c := range []struct {
		name string
		cid  uint16
		tag  uint16
		off  uint32
		n    int
		last bool
		fes  pdu.FES
		fei  uint32
	}{
		{name: "another command", cid: 1, n: 4096, last: true, fes: pdu.FESInvalidHeaderField, fei: 8},
		{name: "another tag", tag: 1, n: 4096, last: true, fes: pdu.FESInvalidHeaderField, fei: 10},
		{name: "not the next data", off: 512, n: 512, fes: pdu.FESSequenceError},
		{name: "before the range", off: 0xfffff000, n: 512, fes: pdu.FESDataOutOfRange},
		{name: "more than was asked for", n: 8192, last: true, fes: pdu.FESDataOutOfRange},
		{name: "last too early", n: 512, last: true, fes: pdu.FESInvalidHeaderField, fei: 1},
		{name: "last missing", n: 4096, fes: pdu.FESInvalidHeaderField, fei: 1},
		{name: "above MAXH2CDATA", n: 8196, last: true, fes: pdu.FESDataLimitExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := oneNamespace(backend.NewHeap(1 << 20))
			cfg.Transport.MaxH2CData = 8192
			q := ioQueue(t, cfg, pdu.ICReqFields{})
			q.post(write(0, 8), nil, 4096)
			r := *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
			flags := pdu.Flags(0)
			if c.last {
				flags = pdu.LastPDU
			}
			q.send(q.h2c(flags, r.CCCID()+c.cid, r.TTAG()+c.tag, c.off, make([]byte, c.n)))
			if e := q.terminated(); e.FES != c.fes || e.FEI != c.fei {
				t.Errorf("FES %v, FEI %#x, want %v, %#x", e.FES, e.FEI, c.fes, c.fei)
			}
		})
	}
}

// TestTooManyCommands has more commands outstanding than the queue has entries.
func TestTooManyCommands(t *testing.T) {
	stall := backend.NewStall(backend.NewHeap(1 << 20))
	l := newLab(t, oneNamespace(stall))
	_, q := l.io(connectOptions{sqSize: 3}, pdu.ICReqFields{})
	stall.Stop()
	for range 5 {
		q.post(read(0, 1), nil, 512)
	}
	if e := q.terminated(); e.FES != pdu.FESSequenceError {
		t.Errorf("FES %v", e.FES)
	}
	l.await("the reads are given up", func() bool { return stall.Waiting() == 0 })
}

// TestHostTerminates has the host give up.
func TestHostTerminates(t *testing.T) {
	var causes []error
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Events = &target.Events{Disconnect: func(_ *target.Subsystem, _, _ uint16, err error) { causes = append(causes, err) }}
	q := ioQueue(t, cfg, pdu.ICReqFields{})
	header := make([]byte, 24)
	b := pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{FES: pdu.FESR2TLimitExceeded}, header)
	q.send(b[:30])
	q.l.step()
	q.send(b[30:])
	q.closed()
	if len(causes) != 1 {
		t.Fatalf("%d connections ended", len(causes))
	}
	if e, ok := causes[0].(*pdu.PeerError); !ok || e.FES != pdu.FESR2TLimitExceeded || len(e.Header) != 24 {
		t.Errorf("cause %v", causes[0])
	}
}

// TestMalformedTermReq is answered by nothing but the end.
func TestMalformedTermReq(t *testing.T) {
	q := ioQueue(t, oneNamespace(backend.NewHeap(1<<20)), pdu.ICReqFields{})
	b := pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{}, nil)
	q.send(set(b, 4, 255))
	q.closed()
}

// TestTerminateBehindData queues a TermReq behind a long read that the host
// does not take.
func TestTerminateBehindData(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(16 << 20))
	cfg.Transport.SendBuffer = 8 << 10
	cfg.Limits.Linger = time.Hour
	l := newLab(t, cfg)
	_, q := l.io(connectOptions{}, pdu.ICReqFields{})
	for range 2 {
		q.post(read(0, 512), nil, 256<<10)
	}
	for range 100 {
		l.step()
	}
	q.send(make([]byte, 8)) // an ICReq with a wrong length
	total := 0
	for {
		p := q.next()
		if p.Type() == pdu.TypeC2HTermReq {
			break
		}
		total += len(p.Data)
	}
	if total == 0 || total > 512<<10 {
		t.Errorf("%d bytes of data before the TermReq", total)
	}
	q.closed()
}

// TestLinger has a host that does not close what was terminated.
func TestLinger(t *testing.T) {
	q := ioQueue(t, oneNamespace(backend.NewHeap(1<<20)), pdu.ICReqFields{})
	q.send(set(make([]byte, 24), 0, 0x0a))
	q.terminated()
	if all, _ := q.l.target.Connections(); all != 2 {
		t.Fatalf("%d connections", all)
	}
	q.send(make([]byte, 100)) // is ignored
	q.l.step()
	q.l.advance(2 * time.Second)
	if all, _ := q.l.target.Connections(); all != 1 {
		t.Errorf("%d connections", all)
	}
}
