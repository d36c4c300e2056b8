package pcie

import (
	"context"
	"encoding"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// fakeDevice is the least of a controller that the driver can be tested on by
// itself: it obeys, and tests make it stop obeying. A goroutine executes
// commands as doorbells say, or the test does with step.
type fakeDevice struct {
	t    testing.TB
	info Info
	bar  []byte // doorbells
	capp nvme.CAPFields
	oacs uint16
	sgls uint32
	mdts uint8
	vs3  uint8 // vendor specific byte 3 of Identify Controller
	disk []byte

	mu       sync.Mutex
	regs     map[uint32]uint64
	maps     map[uint64]Memory
	sqs      map[uint16]*fakeSQ
	cqs      map[uint16]*fakeCQ
	bells    [2]uint64 // Doorbell Buffer Config
	aers     []nvme.Command
	calls    []string
	vectors  map[int]int
	onGone   []func()
	gone     atomic.Bool
	deaf     atomic.Bool // executes nothing
	stuck    bool        // CSTS.RDY does not change
	noReset  bool        // Reset fails
	noMaster bool        // SetBusMaster fails
	master   bool
	closed   bool
	commands []nvme.Command // of I/O queues
	// hook sees completions before they are written, and may change them or
	// hold them back.
	hook func(q uint16, cmd *nvme.Command, c *cqe) bool

	stop chan struct{}
	done chan struct{}
}

type fakeSQ struct {
	id, cq uint16
	mem    []sqe
	head   uint32
	addr   uint64
	prio   uint8
}

type fakeCQ struct {
	mem   []cqe
	tail  uint32
	phase uint64
	iv    int
}

const fakeBlock = 512

func newFake(t testing.TB) *fakeDevice {
	// What the device and the test share is off the heap: the race detector does
	// not know of doorbells.
	a, err := mapArena(64<<20, pageShift)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.unmap)
	d := &fakeDevice{
		t: t, info: Info{Vendor: 0x1b36, Device: 0x10, Class: 0x010802, NUMANode: -1},
		bar: a.b[60<<20:][:0x3000], disk: a.b[:60<<20], mdts: 8,
		capp: nvme.CAPFields{MQES: 1023, CQR: true, TO: 10 * time.Second, CSS: nvme.CAPCSSNVM, MPSMAX: 4},
		regs: map[uint32]uint64{nvme.RegVS: uint64(nvme.Version14)},
		maps: map[uint64]Memory{}, sqs: map[uint16]*fakeSQ{}, cqs: map[uint16]*fakeCQ{}, vectors: map[int]int{},
	}
	return d
}

// run has a goroutine execute commands until the test ends.
func (d *fakeDevice) run() *fakeDevice {
	d.stop, d.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(d.done)
		for idle := 0; ; {
			select {
			case <-d.stop:
				return
			default:
			}
			if d.step() > 0 {
				idle = 0
			} else if idle++; idle > 100 {
				time.Sleep(50 * time.Microsecond)
			} else {
				runtime.Gosched()
			}
		}
	}()
	d.t.Cleanup(func() { close(d.stop); <-d.done })
	return d
}

func (d *fakeDevice) call(format string, args ...any) {
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

// called returns the calls since it was last called.
func (d *fakeDevice) called() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls
	d.calls = nil
	return c
}

func (d *fakeDevice) Name() string { return "fake" }
func (d *fakeDevice) Info() Info   { return d.info }

func (d *fakeDevice) Read32(off uint32) (uint32, error) {
	v, err := d.Read64(off)
	return uint32(v), err
}

func (d *fakeDevice) Read64(off uint32) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone.Load() {
		return 0, ErrGone
	}
	if v, ok := d.regs[off]; ok {
		return v, nil
	}
	if off == nvme.RegCAP {
		return uint64(d.capp.CAP()), nil
	}
	return 0, nil
}

func (d *fakeDevice) Write32(off uint32, v uint32) error { return d.Write64(off, uint64(v)) }

func (d *fakeDevice) Write64(off uint32, v uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone.Load() {
		return ErrGone
	}
	old := nvme.CC(d.regs[nvme.RegCC])
	d.regs[off] = v
	if off == nvme.RegCC && !d.stuck {
		cc := nvme.CC(v)
		switch {
		case cc.EN() && !old.EN():
			d.enable()
		case !cc.EN() && old.EN():
			d.call("disable")
			d.clear()
		}
		st := nvme.CSTSFields{RDY: cc.EN()}
		if cc.SHN() != 0 {
			d.call("shutdown")
			st.SHST = nvme.CSTSSHSTComplete
		}
		d.regs[nvme.RegCSTS] = uint64(st.CSTS())
	}
	return nil
}

func (d *fakeDevice) clear() {
	clear(d.sqs)
	clear(d.cqs)
	d.aers, d.bells = nil, [2]uint64{}
}

func (d *fakeDevice) enable() {
	d.call("enable ams=%d", nvme.CC(d.regs[nvme.RegCC]).AMS())
	clear(d.bar)
	a := nvme.AQA(d.regs[nvme.RegAQA])
	d.sqs[0] = &fakeSQ{mem: sqes(d.at(d.regs[nvme.RegASQ], a.SQEntries()*64)), addr: d.regs[nvme.RegASQ]}
	d.cqs[0] = &fakeCQ{mem: cqes(d.at(d.regs[nvme.RegACQ], a.CQEntries()*16)), phase: phaseBit}
}

// at returns memory by the address that the device knows.
func (d *fakeDevice) at(iova uint64, n int) []byte {
	for at, m := range d.maps {
		if iova >= at && iova-at+uint64(n) <= uint64(len(m.Bytes)) {
			return m.Bytes[iova-at : iova-at+uint64(n)]
		}
	}
	d.t.Errorf("DMA to %#x, %d bytes: nothing is mapped there", iova, n)
	return make([]byte, n)
}

func (d *fakeDevice) BARSize(bar int) uint64 {
	if bar == 0 {
		return uint64(0x1000 + len(d.bar))
	}
	return 0
}

func (d *fakeDevice) Map(bar int, off, n uint64) (mmio.Window, error) {
	if bar != 0 || off < 0x1000 {
		return mmio.Window{}, mmio.ErrBounds
	}
	return mmio.NewWindow(d.bar).Slice(off-0x1000, n)
}

func (d *fakeDevice) Reset(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.call("reset")
	if d.noReset {
		return fmt.Errorf("the reset fails")
	}
	d.clear()
	d.regs[nvme.RegCC], d.regs[nvme.RegCSTS] = 0, 0
	d.stuck = false
	return nil
}

func (d *fakeDevice) SetBusMaster(on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.call("master %v", on)
	if d.noMaster && !on {
		return fmt.Errorf("the bus master bit stays")
	}
	d.master = on
	return nil
}

func (d *fakeDevice) IOVARanges() []Range {
	return []Range{{0x1000, 0xfedfffff}, {0xfef00000, 1<<47 - 1}}
}
func (d *fakeDevice) MaxMappings() int { return 64 }

func (d *fakeDevice) MapDMA(m Memory, iova uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maps[iova] = m
	return nil
}

func (d *fakeDevice) UnmapDMA(iova, n uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.maps[iova]; !ok || uint64(len(m.Bytes)) != n {
		d.t.Errorf("unmapping %d bytes at %#x that are not mapped", n, iova)
	}
	d.call("unmap")
	delete(d.maps, iova)
	return nil
}

func (d *fakeDevice) Interrupts() int { return 4 }

func (d *fakeDevice) SetInterrupt(vector, fd int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vectors[vector] = fd
	if fd < 0 {
		delete(d.vectors, vector)
	}
	return nil
}

func (d *fakeDevice) Gone() bool { return d.gone.Load() }

func (d *fakeDevice) OnGone(f func()) { d.onGone = append(d.onGone, f) }

// remove pulls the device out.
func (d *fakeDevice) remove() {
	d.mu.Lock()
	d.gone.Store(true)
	d.mu.Unlock()
	for _, f := range d.onGone {
		f()
	}
}

func (d *fakeDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.maps) != 0 && !d.closed {
		d.t.Errorf("closed with %d mappings", len(d.maps))
	}
	d.closed = true
	return nil
}

func (d *fakeDevice) bell(qid uint16, cq int) uint32 {
	off := (2*int(qid) + cq) * int(d.capp.CAP().DoorbellStride())
	return mmioLoad(d.bar[off:])
}

// step executes what the doorbells announce and returns the number of commands.
func (d *fakeDevice) step() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	if d.gone.Load() || d.deaf.Load() || !nvme.CSTS(d.regs[nvme.RegCSTS]).RDY() {
		return 0
	}
	for _, id := range slices.Sorted(mapKeys(d.sqs)) {
		q := d.sqs[id]
		for q != nil && d.sqs[id] == q {
			tail := d.tail(q)
			if tail >= uint32(len(q.mem)) {
				d.t.Errorf("doorbell of queue %d says %d of %d", id, tail, len(q.mem))
				break
			}
			if q.head == tail {
				break
			}
			cmd := q.mem[q.head].command()
			if q.head++; int(q.head) == len(q.mem) {
				q.head = 0
			}
			d.execute(q, &cmd)
			n++
		}
	}
	return n
}

// tail reads a doorbell: the shadow one where there are any, whose event index
// asks for no more than that.
func (d *fakeDevice) tail(q *fakeSQ) uint32 {
	if d.bells[0] == 0 || q.id == 0 {
		return d.bell(q.id, 0)
	}
	at := uint64(q.id) * 2 * uint64(d.capp.CAP().DoorbellStride())
	v := mmioLoad(d.at(d.bells[0]+at, 4))
	mmioStore(d.at(d.bells[1]+at, 4), v-1000)
	return v
}

func (d *fakeDevice) execute(q *fakeSQ, cmd *nvme.Command) {
	var c cqe
	st, result, answer := d.perform(q, cmd)
	if !answer {
		return
	}
	c.lo = result
	c.hi = uint64(q.head) | uint64(q.id)<<16 | uint64(cmd.CID)<<32 | uint64(st)<<49
	if d.hook != nil && !d.hook(q.id, cmd, &c) {
		return
	}
	d.complete(q.cq, c)
}

// complete posts a completion; the phase tag is the queue's, unless the entry
// has it set already.
func (d *fakeDevice) complete(cq uint16, c cqe) {
	q := d.cqs[cq]
	if q == nil {
		return
	}
	if (q.tail+1)%uint32(len(q.mem)) == d.bell(cq, 1) {
		d.t.Errorf("completion queue %d is full", cq)
	}
	e := &q.mem[q.tail]
	atomic.StoreUint64(&e.lo, c.lo)
	atomic.StoreUint64(&e.hi, c.hi&^phaseBit|q.phase)
	if q.tail++; int(q.tail) == len(q.mem) {
		q.tail, q.phase = 0, q.phase^phaseBit
	}
	if fd, ok := d.vectors[q.iv]; ok {
		signal(fd)
	}
}

func (d *fakeDevice) perform(q *fakeSQ, cmd *nvme.Command) (nvme.Status, uint64, bool) {
	if q.id != 0 {
		d.commands = append(d.commands, *cmd)
		return d.io(cmd), 0, true
	}
	switch cmd.Opcode {
	case nvme.AdminIdentify:
		return d.identify(cmd), 0, true
	case nvme.AdminAsyncEvent:
		d.aers = append(d.aers, *cmd)
		return 0, 0, false
	case nvme.AdminSetFeatures:
		d.call("feature %#x=%#x", cmd.CDW10, cmd.CDW11)
		if nvme.FeatureID(cmd.CDW10) == nvme.FeatNumberOfQueues {
			return 0, 7<<16 | 7, true
		}
	case nvme.AdminCreateIOCQ:
		c, _ := nvme.ParseCreateCQ(cmd)
		d.call("create cq %d size %d iv %v/%d", c.QID, int(c.Size)+1, c.Interrupts, c.Vector)
		d.cqs[c.QID] = &fakeCQ{mem: cqes(d.at(c.Address, (int(c.Size)+1)*16)), phase: phaseBit, iv: -1}
		if c.Interrupts {
			d.cqs[c.QID].iv = int(c.Vector)
		}
	case nvme.AdminCreateIOSQ:
		c, _ := nvme.ParseCreateSQ(cmd)
		d.call("create sq %d size %d class %d", c.QID, int(c.Size)+1, c.Priority)
		d.sqs[c.QID] = &fakeSQ{id: c.QID, cq: c.CQID, mem: sqes(d.at(c.Address, (int(c.Size)+1)*64)), addr: c.Address, prio: c.Priority}
		mmioStore(d.bar[2*int(c.QID)*int(d.capp.CAP().DoorbellStride()):], 0)
		mmioStore(d.bar[(2*int(c.QID)+1)*int(d.capp.CAP().DoorbellStride()):], 0)
	case nvme.AdminDeleteIOSQ:
		d.call("delete sq %d", cmd.CDW10)
		delete(d.sqs, uint16(cmd.CDW10))
	case nvme.AdminDeleteIOCQ:
		d.call("delete cq %d", cmd.CDW10)
		delete(d.cqs, uint16(cmd.CDW10))
	case nvme.AdminDoorbellBufferConfig:
		d.call("doorbell buffer")
		d.bells = cmd.DPTR
	case nvme.AdminAbort:
		return 0, uint64(nvme.AbortNotPerformed), true
	}
	return 0, 0, true
}

func (d *fakeDevice) identify(cmd *nvme.Command) nvme.Status {
	var m encoding.BinaryAppender
	out := make([]byte, nvme.IdentifyDataSize)
	switch nvme.CNS(cmd.CDW10 & 0xff) {
	case nvme.CNSController:
		id := &nvme.IdentifyController{NN: 1, MDTS: d.mdts, SGLS: d.sgls, OACS: d.oacs, SQES: 0x66, CQES: 0x44, CNTLID: 1, ACL: 3, AERL: 3,
			VER: nvme.Version14, ONCS: nvme.ONCSCompare, FUSES: nvme.FUSESCompareAndWrite}
		id.SetSubsystemNQN("nqn.2026-01.io.qpoll:fake")
		id.VendorBytes[3] = d.vs3
		m = id
	case nvme.CNSActiveNamespaces:
		if cmd.NSID == 0 {
			out[0] = 1
		}
	case nvme.CNSNamespace:
		n := &nvme.IdentifyNamespace{NSZE: uint64(len(d.disk) / fakeBlock), NCAP: uint64(len(d.disk) / fakeBlock)}
		n.LBAF[0].LBADS = 9
		m = n
	case nvme.CNSNamespaceDescriptors:
		out[0], out[1] = 3, 16
		out[4] = 1
	default:
		return nvme.StatusInvalidField
	}
	if m != nil {
		b, err := m.AppendBinary(nil)
		if err != nil {
			d.t.Error(err)
		}
		out = b
	}
	d.move(cmd, out, true)
	return 0
}

func (d *fakeDevice) io(cmd *nvme.Command) nvme.Status {
	lba, n := uint64(cmd.CDW10)|uint64(cmd.CDW11)<<32, int(cmd.CDW12&0xffff)+1
	if (int(lba)+n)*fakeBlock > len(d.disk) {
		return nvme.StatusLBAOutOfRange
	}
	b := d.disk[int(lba)*fakeBlock : (int(lba)+n)*fakeBlock]
	switch cmd.Opcode {
	case nvme.OpRead:
		d.move(cmd, b, true)
	case nvme.OpWrite:
		d.move(cmd, b, false)
	}
	return 0
}

// move copies b to the host, or from it, as the command's data pointer says.
func (d *fakeDevice) move(cmd *nvme.Command, b []byte, in bool) {
	for _, e := range d.extents(cmd, len(b)) {
		m := d.at(e.at, e.n)
		if in {
			copy(m, b[:e.n])
		} else {
			copy(b[:e.n], m)
		}
		b = b[e.n:]
	}
	if len(b) != 0 {
		d.t.Errorf("data pointer is %d bytes short", len(b))
	}
}

type fakeExtent struct {
	at uint64
	n  int
}

// extents reads PRP entries (Base Specification 4.3.1) and SGLs (4.3.2).
func (d *fakeDevice) extents(cmd *nvme.Command, n int) (list []fakeExtent) {
	if cmd.HasSGL() {
		return d.sgl(cmd.SGL(), n)
	}
	at := cmd.DPTR[0]
	if at&3 != 0 {
		d.t.Errorf("PRP1 %#x is not dword aligned", at)
	}
	first := min(n, pageSize-int(at&(pageSize-1)))
	list = append(list, fakeExtent{at, first})
	if n -= first; n == 0 {
		return list
	}
	if n <= pageSize {
		return d.page(list, cmd.DPTR[1], n)
	}
	at = cmd.DPTR[1]
	if at&7 != 0 {
		d.t.Errorf("PRP list at %#x", at)
	}
	for n > 0 {
		v := le64(d.at(at, 8))
		if (at+8)&(pageSize-1) == 0 && n > pageSize {
			at = v
			if at&(pageSize-1) != 0 {
				d.t.Errorf("PRP list goes on at %#x", at)
			}
			continue
		}
		list = d.page(list, v, min(n, pageSize))
		n -= min(n, pageSize)
		at += 8
	}
	return list
}

func (d *fakeDevice) page(list []fakeExtent, at uint64, n int) []fakeExtent {
	if at&(pageSize-1) != 0 {
		d.t.Errorf("PRP entry %#x has an offset", at)
	}
	return append(list, fakeExtent{at, n})
}

func (d *fakeDevice) sgl(s nvme.SGLDescriptor, n int) (list []fakeExtent) {
	switch {
	case s.Is(nvme.SGLTypeDataBlock, nvme.SGLSubtypeAddress):
		if int(s.Length) != n {
			d.t.Errorf("SGL of %d bytes for %d", s.Length, n)
		}
		return []fakeExtent{{s.Address, n}}
	case s.Is(nvme.SGLTypeLastSegment, nvme.SGLSubtypeAddress):
		for off := uint64(0); off < uint64(s.Length); off += 16 {
			b := d.at(s.Address+off, 16)
			e := nvme.SGLFromDPTR([2]uint64{le64(b), le64(b[8:])})
			if !e.Is(nvme.SGLTypeDataBlock, nvme.SGLSubtypeAddress) {
				d.t.Errorf("descriptor %v in a last segment", e)
			}
			list = append(list, fakeExtent{e.Address, int(e.Length)})
		}
		return list
	}
	d.t.Errorf("unexpected SGL %v", s)
	return nil
}
