package pcietest

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/testutil"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// arenaBase is where the memory of a driver is for the controller.
const (
	arenaBase = 0x1000_0000
	arenaSize = 8 << 20
)

// driver is the smallest driver that there is: it knows nothing of package
// pcie's, so that it is a second opinion on the controller.
type driver struct {
	t      testing.TB
	c      *Controller
	dev    pcie.Device
	fd     int
	mem    []byte
	next   uint64
	page   uint64
	stride uint64
	db     mmio.Window
	sqs    map[uint16]*ring
	cqs    map[uint16]*ring
	cid    uint16
	now    int64
	step   func() // gives the controller time
}

// ring is a queue.
type ring struct {
	base  uint64
	size  uint32
	at    uint32
	phase uint16
}

// newDriver makes a controller, and a driver with memory.
func newDriver(t testing.TB, cfg Config) *driver {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	d := drive(t, c, c.Device())
	d.step = func() { d.now += 1000; c.Poll(d.now) }
	return d
}

// drive makes a driver of a device.
func drive(t testing.TB, c *Controller, dev pcie.Device) *driver {
	t.Helper()
	d := &driver{t: t, c: c, dev: dev, sqs: map[uint16]*ring{}, cqs: map[uint16]*ring{}, cid: 0x100}
	var err error
	d.fd, err = sys.Memfd("driver", arenaSize, 0)
	d.must(err)
	d.mem, err = sys.Mmap(d.fd, 0, arenaSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	d.must(err)
	d.must(dev.MapDMA(pcie.Memory{Bytes: d.mem, FD: d.fd}, arenaBase))
	d.must(dev.SetBusMaster(true))
	t.Cleanup(func() {
		d.must(dev.Close())
		d.must(sys.Munmap(d.mem))
		d.must(sys.Close(d.fd))
	})
	cap, err := dev.Read64(nvme.RegCAP)
	d.must(err)
	d.page = uint64(nvme.CAP(cap).MinPageSize())
	d.stride = uint64(nvme.CAP(cap).DoorbellStride())
	d.db, err = dev.Map(0, nvme.RegDoorbells, dev.BARSize(0)-nvme.RegDoorbells)
	d.must(err)
	return d
}

func (d *driver) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// alloc returns the address of n bytes of cleared memory, from a new page on.
func (d *driver) alloc(n int) uint64 {
	d.t.Helper()
	at := (d.next + d.page - 1) &^ (d.page - 1)
	if d.next = at + uint64(n); d.next > arenaSize {
		d.t.Fatal("out of memory for DMA")
	}
	clear(d.mem[at : at+uint64(n)])
	return arenaBase + at
}

// at returns memory.
func (d *driver) at(iova uint64, n int) []byte { return d.mem[iova-arenaBase:][:n:n] }

// cc is what CC is set to.
func (d *driver) cc() nvme.CC {
	f := nvme.CCFields{EN: true, IOSQES: 6, IOCQES: 4}
	for p := d.page; p > 4096; p >>= 1 {
		f.MPS++
	}
	return f.CC()
}

func (d *driver) csts() nvme.CSTS {
	d.t.Helper()
	v, err := d.dev.Read32(nvme.RegCSTS)
	d.must(err)
	return nvme.CSTS(v)
}

// prepare tells the controller of the admin queue.
func (d *driver) prepare(entries int) {
	d.t.Helper()
	d.sqs[0] = &ring{base: d.alloc(entries * 64), size: uint32(entries)}
	d.cqs[0] = &ring{base: d.alloc(entries * 16), size: uint32(entries), phase: 1}
	d.must(d.dev.Write32(nvme.RegAQA, uint32(nvme.MakeAQA(entries, entries))))
	d.must(d.dev.Write64(nvme.RegASQ, d.sqs[0].base))
	d.must(d.dev.Write64(nvme.RegACQ, d.cqs[0].base))
}

// enable enables the controller.
func (d *driver) enable() *driver {
	d.t.Helper()
	d.prepare(16)
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc())))
	for range 1000 {
		if d.csts().RDY() {
			return d
		}
		d.step()
	}
	d.t.Fatalf("not ready: CSTS is %v", d.csts())
	return nil
}

func (d *driver) disable() {
	d.t.Helper()
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc().WithEN(false))))
	for range 1000 {
		if !d.csts().RDY() {
			clear(d.sqs)
			clear(d.cqs)
			return
		}
		d.step()
	}
	d.t.Fatalf("still ready: CSTS is %v", d.csts())
}

// put puts a command into a queue, under an identifier that it returns.
func (d *driver) put(qid uint16, cmd nvme.Command) uint16 {
	d.t.Helper()
	d.cid++
	cmd.CID = d.cid
	q := d.sqs[qid]
	copy(d.at(q.base+uint64(q.at)*64, 64), commandBytes(&cmd)[:])
	if q.at++; q.at == q.size {
		q.at = 0
	}
	return d.cid
}

// ring writes the doorbell of a submission queue.
func (d *driver) ring(qid uint16) {
	d.t.Helper()
	d.must(d.db.Write32(2*uint64(qid)*d.stride, d.sqs[qid].at))
}

// reap takes a completion.
func (d *driver) reap(qid uint16) (cpl nvme.Completion, ok bool) {
	q := d.cqs[qid]
	w := mmio.NewWindow(d.at(q.base+uint64(q.at)*16, 16))
	high, err := w.Read64(8)
	d.must(err)
	if uint16(high>>48)&1 != q.phase {
		return cpl, false
	}
	mmio.LoadFence()
	low, err := w.Read64(0)
	d.must(err)
	if q.at++; q.at == q.size {
		q.at, q.phase = 0, q.phase^1
	}
	d.must(d.db.Write32((2*uint64(qid)+1)*d.stride, q.at))
	return nvme.Completion{Result: low, SQHead: uint16(high), SQID: uint16(high >> 16), CID: uint16(high >> 32), StatusPhase: uint16(high >> 48)}, true
}

// patience is how often a driver looks for a completion.
const patience = 200_000

// wait waits for a completion.
func (d *driver) wait(qid uint16) nvme.Completion {
	d.t.Helper()
	for range patience {
		if cpl, ok := d.reap(qid); ok {
			return cpl
		}
		d.step()
	}
	d.t.Fatalf("no completion on queue %d; CSTS is %v, faults %v", qid, d.csts(), d.c.Faults())
	return nvme.Completion{}
}

// do executes a command.
func (d *driver) do(qid uint16, cmd nvme.Command) nvme.Completion {
	d.t.Helper()
	cid := d.put(qid, cmd)
	d.ring(qid)
	cpl := d.wait(qid)
	if cpl.CID != cid || cpl.SQID != qid {
		d.t.Fatalf("completion of command %#x of queue %d, want %#x of %d", cpl.CID, cpl.SQID, cid, qid)
	}
	return cpl
}

// ok executes a command that must succeed, and returns its result.
func (d *driver) ok(qid uint16, cmd nvme.Command) uint64 {
	d.t.Helper()
	cpl := d.do(qid, cmd)
	if s := cpl.Status(); s != 0 {
		d.t.Fatalf("%v", s.ErrorFor(cmd.Opcode))
	}
	return cpl.Result
}

// fails executes a command that must fail with a status.
func (d *driver) fails(qid uint16, cmd nvme.Command, want nvme.Status) {
	d.t.Helper()
	if cpl := d.do(qid, cmd); cpl.Status().Code() != want.Code() {
		d.t.Errorf("%s: %v, want %v", nvme.AdminName(cmd.Opcode), cpl.Status(), want)
	}
}

// queue creates a pair of I/O queues.
func (d *driver) queue(qid uint16, entries int) {
	d.t.Helper()
	cq := &ring{base: d.alloc(entries * 16), size: uint32(entries), phase: 1}
	sq := &ring{base: d.alloc(entries * 64), size: uint32(entries)}
	d.ok(0, nvme.CreateCQCommand{QID: qid, Size: uint16(entries - 1), Address: cq.base, Contiguous: true}.Command())
	d.cqs[qid] = cq
	d.ok(0, nvme.CreateSQCommand{QID: qid, Size: uint16(entries - 1), Address: sq.base, Contiguous: true, CQID: qid}.Command())
	d.sqs[qid] = sq
}

// rw is a command on blocks.
func rw(op nvme.Opcode, nsid uint32, lba uint64, blocks uint32, prp ...uint64) nvme.Command {
	cmd := nvme.Command{Opcode: op, NSID: nsid, CDW10: uint32(lba), CDW11: uint32(lba >> 32), CDW12: blocks - 1}
	copy(cmd.DPTR[:], prp)
	return cmd
}

// noFaults is for the end of a test.
func (d *driver) noFaults() {
	d.t.Helper()
	for _, f := range d.c.Faults() {
		d.t.Error(f)
	}
}

func (d *driver) reset() {
	d.t.Helper()
	d.must(d.dev.Reset(context.Background()))
	clear(d.sqs)
	clear(d.cqs)
	d.must(d.dev.SetBusMaster(true))
}

// identify is an Identify command with memory.
func (d *driver) identify(i nvme.IdentifyCommand) nvme.Command {
	cmd := i.Command()
	cmd.DPTR[0] = d.alloc(4096)
	return cmd
}

// wait lets others run.
func wait() { time.Sleep(20 * time.Microsecond) }

// both runs a test on both front ends.
func both(t *testing.T, cfg Config, f func(t *testing.T, d *driver)) {
	t.Run("in process", func(t *testing.T) { f(t, newDriver(t, cfg)) })
	t.Run("vfio-user", func(t *testing.T) { f(t, newRemote(t, cfg)) })
}
