package pcie

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
)

// FuzzCompletions has a controller write anything into the completion queue of
// a queue with commands of all kinds out. Each command completes once at most,
// entries that name none end the queue, and nothing else happens.
func FuzzCompletions(f *testing.F) {
	entry := func(cid, sqid, head, status uint16) []byte {
		b := binary.LittleEndian.AppendUint64(nil, 0x1234)
		b = binary.LittleEndian.AppendUint16(b, head)
		b = binary.LittleEndian.AppendUint16(b, sqid)
		b = binary.LittleEndian.AppendUint16(b, cid)
		return binary.LittleEndian.AppendUint16(b, status)
	}
	good := entry(0, 1, 1, 1)
	f.Add(good)
	f.Add(append(good, good...))
	f.Add(append(entry(1, 1, 2, 1), entry(2, 1, 3, 3)...))
	f.Add(entry(0, 2, 1, 1))
	f.Add(entry(0xffff, 1, 1, 1))
	f.Add(entry(0, 1, 8, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, _, l := idealQueue(t, 8, Config{MaxTransfer: 128 << 10})
		mem, err := l.c.Alloc(64 << 10)
		if err != nil {
			t.Fatal(err)
		}
		defer l.c.Free(mem)
		heap := make([]byte, 64<<10)
		qp := q.QueuePair()
		x := qp.Transport().(*queue)
		var c counter
		for _, submit := range []func() error{
			func() error { return q.Read(mem[:4096], 0, 8, countDone, &c) },
			func() error { return q.Write(mem, 0, 128, countDone, &c) },
			func() error { return q.Read(heap, 0, 128, countDone, &c) },
			func() error { return q.Write(heap[:512], 0, 1, countDone, &c) },
			func() error { return q.Flush(countDone, &c) },
		} {
			if err := submit(); err != nil {
				t.Fatal(err)
			}
		}
		qp.Poll(1)
		for i := 0; len(b) >= nvme.CompletionSize && i < 64; i++ {
			e := &x.cq[i%len(x.cq)]
			e.lo, e.hi = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			b = b[nvme.CompletionSize:]
			qp.Poll(int64(i + 2))
		}
		if c.n > 5 || c.n+qp.InFlight() != 5 {
			t.Errorf("%d completed, %d in flight of 5", c.n, qp.InFlight())
		}
		if broken := qp.Broken(); broken != nil {
			var bad *CompletionError
			if !errors.As(broken, &bad) || x.up {
				t.Errorf("lost by %v, up %v", broken, x.up)
			}
		}
		used := 0
		for i := range x.slots {
			for p := x.slots[i].page; p != 0; p = x.pool.next[p-1] {
				used++
			}
		}
		if used+x.pool.free != len(x.pool.addr) {
			t.Errorf("%d pages in use and %d free of %d", used, x.pool.free, len(x.pool.addr))
		}
	})
}

// FuzzRegisters has registers read as anything. Connecting ends, with an error
// or not.
func FuzzRegisters(f *testing.F) {
	good := nvme.CAPFields{MQES: 1023, CQR: true, CSS: nvme.CAPCSSNVM, CMBS: true}
	f.Add(uint64(good.CAP()), uint32(0), uint32(0), uint32(0), uint32(0))
	f.Add(^uint64(0), ^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0))
	f.Add(uint64(good.CAP()), uint32(0), uint32(0), uint32(0x00002000), uint32(0x000f_f01f))
	f.Add(uint64(good.CAP())|0xf<<32, uint32(0), uint32(2), uint32(7), uint32(0xf01f))
	f.Fuzz(func(t *testing.T, capp uint64, cc, csts, cmbloc, cmbsz uint32) {
		d := newFake(t)
		d.regs[nvme.RegCAP] = capp &^ (0xff << 24) // CAP.TO 0: half a second
		d.regs[nvme.RegCC], d.regs[nvme.RegCSTS] = uint64(cc), uint64(csts&^1)
		d.regs[nvme.RegCMBLOC], d.regs[nvme.RegCMBSZ] = uint64(cmbloc), uint64(cmbsz)
		tr, err := New(registerFake{d}, &Config{CMB: CMBQueues | CMBData, NoHugePages: true, ArenaSize: 4 << 20, MaxTransfer: 128 << 10})
		if err != nil {
			t.Fatal(err)
		}
		p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		// Nobody executes commands: what is left after the registers times out.
		c, err := nvme.NewController(testContext(t), tr, &nvme.Config{Poller: p, ConnectTimeout: 1})
		if err == nil {
			t.Error("a controller came up that executes nothing")
			c.Close(testContext(t))
		}
		if len(d.maps) != 0 || !d.closed {
			t.Errorf("%d mappings left, closed %v", len(d.maps), d.closed)
		}
	})
}

// registerFake has a second BAR, for the controller memory buffer.
type registerFake struct{ *fakeDevice }

func (d registerFake) BARSize(bar int) uint64 {
	if bar == 2 {
		return 1 << 20
	}
	return d.fakeDevice.BARSize(bar)
}

func (d registerFake) Map(bar int, off, n uint64) (mmio.Window, error) {
	if bar == 2 {
		return mmio.NewWindow(make([]byte, 1<<20)).Slice(off, n)
	}
	return d.fakeDevice.Map(bar, off, n)
}
