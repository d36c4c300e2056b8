package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// fakeDisk is a Transport to a controller in memory. Every answer passes
// through hook, which may change or withhold it.
type fakeDisk struct {
	mu       sync.Mutex
	block    int
	disk     []byte
	id       IdentifyController
	ns       IdentifyNamespace
	nvm      *IdentifyControllerNVM
	uuid     [16]byte
	csts, cc uint64
	capp     CAP
	version  VS
	queues   map[uint16]*fakeQueue
	connects int
	// hook sees each command before it runs; answer false to keep silent.
	hook func(q *fakeQueue, r *Request) (st Status, answer bool)
	// refuse makes Connect fail.
	refuse func(qid uint16) error
	// connecting and disconnecting see the calls before they have an effect,
	// and may take their time.
	connecting    func(ctx context.Context, qp *QueuePair) error
	disconnecting func(qp *QueuePair)
	// connected is called on the core when a queue has come up.
	connected func(q *fakeQueue)
	cntlid    uint16 // as Connect tells it
	most      uint32 // bytes per command that the transport moves
	stripe    uint32 // Limits.Stripe
	// dropped sees the commands that a lost connection carried.
	dropped func(q *fakeQueue, r *Request)
	// wrote sees each change of the disk, d.mu held; data is nil for zeroes.
	wrote   func(lba, blocks int, data []byte)
	removed bool // namespace 1 is no more
	// told is the first byte of the UUID that the host was told first on this
	// association: older namespaces it must not use.
	told     byte
	local    bool // memory based, as PCIe
	closed   bool
	misused  []string  // calls after Close
	commands []Command // I/O commands, in order of execution
}

// fakeQueue is the transport side of one queue pair.
type fakeQueue struct {
	d      *fakeDisk
	qp     *QueuePair
	posted []*Request
	silent []*Request
	up     bool
	cpl    Completion
	conn   int          // counts connections
	quiet  atomic.Int64 // nothing arrives before this time
	held   atomic.Int32 // commands that wait for that
	seq    uint64       // of the last command on this connection, plus one
}

func newFakeDisk(block, blocks int) *fakeDisk {
	d := &fakeDisk{block: block, disk: make([]byte, block*blocks), queues: map[uint16]*fakeQueue{},
		capp: CAPFields{MQES: 1023, TO: 5 * time.Second, CQR: true, CSS: 1}.CAP(), version: MakeVS(2, 0, 0)}
	d.id.NN, d.id.MDTS, d.id.KAS = 4, 0, 0
	d.id.ONCS = ONCSCompare | ONCSDatasetManagement | ONCSWriteZeroes | ONCSVerify
	d.id.FUSES, d.id.ACL = FUSESCompareAndWrite, 3
	d.id.CNTLID, d.cntlid = 1, 1
	d.id.LPA = LPAExtendedData
	d.id.SetSubsystemNQN("nqn.2026-01.io.qpoll:fake")
	d.ns.NSZE, d.ns.NCAP = uint64(blocks), uint64(blocks)
	for 1<<d.ns.LBAF[0].LBADS != block {
		d.ns.LBAF[0].LBADS++
	}
	d.uuid = [16]byte{1, 2, 3}
	return d
}

func (d *fakeDisk) Name() string    { return "fake" }
func (d *fakeDisk) Address() string { return "fake disk" }

func (d *fakeDisk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use("Close")
	d.closed = true
	return nil
}

// use notes a call that comes too late. d.mu is held.
func (d *fakeDisk) use(call string) {
	if d.closed {
		d.misused = append(d.misused, call)
	}
}

func (d *fakeDisk) Limits(*IdentifyController) Limits {
	return Limits{ControllerID: d.cntlid, Fabrics: !d.local, MaxTransfer: d.most, Stripe: d.stripe}
}

func (d *fakeDisk) Connect(ctx context.Context, qp *QueuePair) error {
	d.mu.Lock()
	d.use("Connect")
	refuse, connecting, connected := d.refuse, d.connecting, d.connected
	d.mu.Unlock()
	if connecting != nil {
		if err := connecting(ctx, qp); err != nil {
			return err
		}
	}
	if refuse != nil {
		if err := refuse(qp.ID()); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.connects++
	if qp.ID() == 0 {
		d.told = 0
	}
	q := d.queues[qp.ID()]
	if q == nil || q.qp != qp {
		q = &fakeQueue{d: d, qp: qp}
		d.queues[qp.ID()] = q
	}
	d.mu.Unlock()
	return qp.Poller().Call(ctx, func() {
		qp.Attach(q)
		q.down()
		q.up, q.seq = true, 0
		if connected != nil {
			connected(q)
		}
	})
}

func (d *fakeDisk) Disconnect(_ context.Context, qp *QueuePair) error {
	d.mu.Lock()
	d.use("Disconnect")
	disconnecting := d.disconnecting
	d.mu.Unlock()
	if disconnecting != nil {
		disconnecting(qp)
	}
	qp.Poller().CallAnyway(func() {
		if q, ok := qp.Transport().(*fakeQueue); ok {
			q.down()
		}
		qp.Quiesced()
	})
	return nil
}

// cut loses a queue as a broken connection would.
func (q *fakeQueue) cut(err error) {
	q.qp.Poller().CallAnyway(func() { q.cutHere(err) })
}

func (q *fakeQueue) cutHere(err error) {
	if q.up {
		q.down()
		q.qp.Lost(err)
	}
	q.qp.Quiesced()
}

// down forgets a connection and what it carried; some of that may have been
// executed.
func (q *fakeQueue) down() {
	lost := append(q.silent, q.posted...)
	q.up, q.posted, q.silent = false, nil, nil
	q.conn++
	if q.d.dropped != nil {
		for _, r := range lost {
			q.d.dropped(q, r)
		}
	}
}

func (d *fakeDisk) Property(_ context.Context, off uint32, size int) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use("Property")
	switch off {
	case RegCAP:
		return uint64(d.capp), nil
	case RegVS:
		return uint64(d.version), nil
	case RegCC:
		return d.cc, nil
	case RegCSTS:
		return d.csts, nil
	}
	return 0, errors.New("no such property")
}

func (d *fakeDisk) SetProperty(_ context.Context, off uint32, size int, v uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use("SetProperty")
	if off == RegCC {
		d.cc, d.csts = v, v&1
		if CC(v).SHN() != 0 {
			d.csts |= uint64(CSTSSHSTComplete) << 2
		}
	}
	return nil
}

func (q *fakeQueue) Submit(r *Request) {
	q.d.mu.Lock()
	if r.seq < q.seq && q.qp.ID() != 0 {
		q.d.misused = append(q.d.misused, fmt.Sprintf("queue %d: command %d after %d", q.qp.ID(), r.seq, q.seq-1))
	}
	if r.ns != nil && r.ns.ident.UUID[0] < q.d.told {
		q.d.misused = append(q.d.misused, fmt.Sprintf("queue %d: command for namespace %d, now %d", q.qp.ID(), r.ns.ident.UUID[0], q.d.told))
	}
	q.d.mu.Unlock()
	q.seq = r.seq + 1
	q.posted = append(q.posted, r)
}

func (q *fakeQueue) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, len(q.posted) == 0 }

func (q *fakeQueue) Poll(now int64) int {
	if now < q.quiet.Load() {
		q.held.Store(int32(len(q.posted)))
		return 0
	}
	list := q.posted
	q.posted = nil
	for _, r := range list {
		if !q.up {
			return len(list)
		}
		st, answer := Status(0), true
		q.cpl = Completion{CID: r.Cmd.CID, SQID: q.qp.ID()}
		if q.d.hook != nil {
			st, answer = q.d.hook(q, r)
		}
		if !answer {
			q.silent = append(q.silent, r)
			continue
		}
		if st == 0 {
			if st = q.execute(r); st == later {
				continue
			}
		}
		q.cpl.StatusPhase = uint16(st) << 1
		q.qp.Complete(r, &q.cpl)
	}
	return len(list)
}

// later is the status of a command that is not answered now.
const later Status = 0x7fff

func (q *fakeQueue) execute(r *Request) Status {
	if q.qp.ID() == 0 {
		return q.admin(r)
	}
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.d.commands = append(q.d.commands, r.Cmd)
	return q.io(r)
}

// bytes returns r's data in one piece, and a function to write it back.
func flat(d *Data) []byte {
	if d.Vec == nil {
		return d.Buf[:d.Len]
	}
	var all []byte
	for _, p := range d.Vec {
		all = append(all, p...)
	}
	return all[d.Off : d.Off+int(d.Len)]
}

func unflat(d *Data, b []byte) {
	if d.Vec == nil {
		copy(d.Buf, b)
		return
	}
	skip := d.Off
	for _, p := range d.Vec {
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		b = b[copy(p[skip:], b):]
		skip = 0
	}
}

func (q *fakeQueue) io(r *Request) Status {
	d := q.d
	off := int(uint64(r.Cmd.CDW10)|uint64(r.Cmd.CDW11)<<32) * d.block
	n := (int(r.Cmd.CDW12&0xffff) + 1) * d.block
	switch r.Cmd.Opcode {
	case OpRead, OpWrite, OpCompare, OpWriteZeroes, OpVerify:
		if uint64(off+n) > d.ns.NSZE*uint64(d.block) {
			return StatusLBAOutOfRange | StatusDNR
		}
	}
	switch r.Cmd.Opcode {
	case OpRead:
		unflat(&r.Data, d.disk[off:off+n])
	case OpWrite:
		d.change(off, n, flat(&r.Data))
	case OpCompare:
		if string(d.disk[off:off+n]) != string(flat(&r.Data)) {
			return StatusCompareFailure
		}
	case OpWriteZeroes:
		d.change(off, n, nil)
	case OpDatasetManagement:
		b := flat(&r.Data)
		for i := range int(r.Cmd.CDW10) + 1 {
			n := int(binary.LittleEndian.Uint32(b[16*i+4:]))
			lba := int(binary.LittleEndian.Uint64(b[16*i+8:]))
			d.change(lba*d.block, n*d.block, nil)
		}
	case OpFlush, OpVerify:
	default:
		return StatusInvalidOpcode
	}
	return 0
}

// change writes data, or zeroes.
func (d *fakeDisk) change(off, n int, data []byte) {
	if data == nil {
		clear(d.disk[off : off+n])
	} else {
		copy(d.disk[off:off+n], data)
	}
	if d.wrote != nil {
		d.wrote(off/d.block, n/d.block, data)
	}
}

func (q *fakeQueue) admin(r *Request) Status {
	d := q.d
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Cmd.Opcode {
	case AdminIdentify:
		var b []byte
		switch CNS(r.Cmd.CDW10) {
		case CNSController:
			b, _ = d.id.AppendBinary(nil)
		case CNSNamespace:
			if r.Cmd.NSID != 1 || d.removed {
				return StatusInvalidNamespace | 1<<14
			}
			b, _ = d.ns.AppendBinary(nil)
		case CNSNamespaceDescriptors:
			b, _ = (&NamespaceIdentity{UUID: d.uuid}).AppendBinary(nil)
			if d.told == 0 {
				d.told = d.uuid[0]
			}
		case CNSActiveNamespaces:
			b = make([]byte, 4096)
			b[0] = 1
		case CNSControllerCS:
			if d.nvm == nil {
				return StatusInvalidField | 1<<14
			}
			b, _ = d.nvm.AppendBinary(nil)
		default:
			return StatusInvalidField | 1<<14
		}
		copy(r.Data.Buf, b)
	case AdminSetFeatures:
		q.cpl.Result = uint64(r.Cmd.CDW11)
	case AdminGetFeatures, AdminKeepAlive:
	case AdminGetLogPage:
		clear(r.Data.Buf)
	case AdminAbort:
		q.abort(uint16(r.Cmd.CDW10), uint16(r.Cmd.CDW10>>16))
	case AdminAsyncEvent:
		q.silent = append(q.silent, r)
		return later
	default:
		return StatusInvalidOpcode
	}
	return 0
}

// abort completes a withheld command of queue sqid.
func (q *fakeQueue) abort(sqid, cid uint16) {
	q.cpl.Result = 1
	other := q.d.queues[sqid]
	if other == nil || other.qp.Poller() != q.qp.Poller() {
		return
	}
	for i, r := range other.silent {
		if r.Cmd.CID == cid {
			other.silent = append(other.silent[:i], other.silent[i+1:]...)
			q.cpl.Result = 0
			conn := other.conn
			postLater(q.qp.Poller(), func() {
				if other.conn != conn {
					return
				}
				other.cpl = Completion{CID: cid, StatusPhase: uint16(StatusAbortRequested) << 1}
				other.qp.Complete(r, &other.cpl)
			})
			return
		}
	}
}
