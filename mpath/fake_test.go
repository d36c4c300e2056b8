package mpath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// fakeMedia is what the fake controllers of a subsystem share.
type fakeMedia struct {
	mu  sync.Mutex
	mem []byte // blocks of 512 bytes
}

func newMedia(blocks int) *fakeMedia { return &fakeMedia{mem: make([]byte, blocks*512)} }

func (m *fakeMedia) at(lba uint64) byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mem[lba*512]
}

func (m *fakeMedia) write(lba uint64, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	copy(m.mem[lba*512:], b)
}

// fakeNS is a namespace as one controller has it.
type fakeNS struct {
	media *fakeMedia
	ids   nvme.NamespaceIdentity
	nmic  uint8
	group uint32
	flbas uint8 // LBADS, 0: 9
}

// fakeController is a Transport to a controller in memory, whose queues are
// polled as any others.
type fakeController struct {
	name string
	id   nvme.IdentifyController
	// hook sees each I/O command before it is executed; ok false withholds it.
	// It is called on the core.
	hook func(r *nvme.Request) (st nvme.Status, ok bool)

	mu     sync.Mutex
	ns     map[uint32]*fakeNS
	states map[uint32]nvme.ANAState
	change uint64
	cc     uint64
	refuse error // of Connect
	queues map[uint16]*fakeQueue
	logs   int // ANA logs that were read
}

// fakeQueue is the transport side of one queue pair.
type fakeQueue struct {
	k      *fakeController
	qp     *nvme.QueuePair
	posted []*nvme.Request
	held   []*nvme.Request
	aers   []*nvme.Request
	up     bool
	cpl    nvme.Completion
}

var (
	errCut = errors.New("fake: connection was cut")
	idsOne = nvme.NamespaceIdentity{NGUID: [16]byte{1}}
)

// newController makes a controller with namespace 1 on media.
func newController(cntlid uint16, media *fakeMedia) *fakeController {
	k := &fakeController{
		name: fmt.Sprintf("fake %d", cntlid), queues: map[uint16]*fakeQueue{},
		ns:     map[uint32]*fakeNS{1: {media: media, ids: idsOne, nmic: nvme.NMICShared, group: 1}},
		states: map[uint32]nvme.ANAState{}, change: 1,
	}
	k.id.CNTLID, k.id.NN, k.id.CMIC, k.id.LPA = cntlid, 64, nvme.CMICMultipleControllers, nvme.LPAExtendedData
	k.id.ONCS = nvme.ONCSWriteZeroes | nvme.ONCSDatasetManagement | nvme.ONCSCompare
	k.id.OAES = nvme.AsyncConfigANAChange | nvme.AsyncConfigNamespaceAttribute
	k.id.AERL, k.id.ACL = 3, 3
	k.id.SetSubsystemNQN(testNQN)
	return k
}

// withANA has the controller report ANA.
func (k *fakeController) withANA(anatt uint8) *fakeController {
	k.id.CMIC |= nvme.CMICANAReporting
	k.id.ANATT, k.id.ANAGRPMAX, k.id.NANAGRPID = anatt, 8, 8
	return k
}

func (k *fakeController) Name() string    { return "fake" }
func (k *fakeController) Address() string { return k.name }
func (k *fakeController) Close() error    { return nil }

func (k *fakeController) Limits(*nvme.IdentifyController) nvme.Limits {
	return nvme.Limits{ControllerID: k.id.CNTLID, Fabrics: true}
}

func (k *fakeController) Connect(ctx context.Context, qp *nvme.QueuePair) error {
	k.mu.Lock()
	refuse := k.refuse
	q := &fakeQueue{k: k, qp: qp}
	if refuse == nil {
		k.queues[qp.ID()] = q
	}
	k.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	return qp.Poller().Call(ctx, func() {
		qp.Attach(q)
		q.up = true
	})
}

func (k *fakeController) Disconnect(_ context.Context, qp *nvme.QueuePair) error {
	qp.Poller().CallAnyway(func() {
		if q, ok := qp.Transport().(*fakeQueue); ok {
			q.up, q.posted, q.held, q.aers = false, nil, nil, nil
		}
		qp.Quiesced()
	})
	return nil
}

func (k *fakeController) Property(_ context.Context, off uint32, size int) (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch off {
	case nvme.RegCAP:
		return uint64(nvme.CAPFields{MQES: 1023, TO: 5 * time.Second, CQR: true, CSS: 1}.CAP()), nil
	case nvme.RegVS:
		return uint64(nvme.MakeVS(2, 0, 0)), nil
	case nvme.RegCC:
		return k.cc, nil
	case nvme.RegCSTS:
		csts := k.cc & 1
		if nvme.CC(k.cc).SHN() != 0 {
			csts |= uint64(nvme.CSTSSHSTComplete) << 2
		}
		return csts, nil
	}
	return 0, errors.New("fake: no such property")
}

func (k *fakeController) SetProperty(_ context.Context, off uint32, size int, v uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if off == nvme.RegCC {
		k.cc = v
	}
	return nil
}

// cut breaks all connections with an error; refuse makes Connect fail until it
// is called with nil.
func (k *fakeController) cut(err error) {
	k.mu.Lock()
	var all []*fakeQueue
	for _, q := range k.queues {
		all = append(all, q)
	}
	k.mu.Unlock()
	for _, q := range all {
		q.qp.Poller().CallAnyway(func() {
			if q.up {
				q.up = false
				q.qp.Lost(err)
			}
		})
	}
}

func (k *fakeController) setRefuse(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse = err
}

// setANA changes the state of a group; tell sends the event.
func (k *fakeController) setANA(group uint32, s nvme.ANAState, tell bool) {
	k.mu.Lock()
	k.states[group] = s
	k.change++
	k.mu.Unlock()
	if tell {
		k.event(nvme.NoticeANAChange, nvme.LogANA)
	}
}

// event sends an asynchronous event of type Notice.
func (k *fakeController) event(info uint8, page nvme.LogID) {
	k.mu.Lock()
	q := k.queues[0]
	k.mu.Unlock()
	_ = q.qp.Poller().Call(context.Background(), func() {
		if !q.up || len(q.aers) == 0 {
			return
		}
		r := q.aers[0]
		q.aers = q.aers[1:]
		q.qp.Complete(r, &nvme.Completion{CID: r.Cmd.CID, Result: uint64(nvme.AsyncNotice) | uint64(info)<<8 | uint64(page)<<16})
	})
}

func (k *fakeController) setNS(nsid uint32, ns *fakeNS) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ns == nil {
		delete(k.ns, nsid)
	} else {
		k.ns[nsid] = ns
	}
}

func (k *fakeController) logsRead() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.logs
}

func (q *fakeQueue) Submit(r *nvme.Request) { q.posted = append(q.posted, r) }

func (q *fakeQueue) Arm(int64) (int, int16, int64, bool) { return -1, 0, 0, len(q.posted) == 0 }

func (q *fakeQueue) Poll(int64) int {
	n := len(q.posted)
	for i := 0; i < n && q.up; i++ {
		r := q.posted[i]
		q.cpl = nvme.Completion{CID: r.Cmd.CID, SQID: q.qp.ID()}
		st, ok := nvme.StatusSuccess, true
		switch {
		case q.qp.ID() == 0:
			st, ok = q.admin(r)
		case q.k.hook != nil:
			st, ok = q.k.hook(r)
		}
		if !ok {
			if q.qp.ID() != 0 {
				q.held = append(q.held, r)
			}
			continue
		}
		if st.OK() && q.qp.ID() != 0 {
			st = q.io(r)
		}
		q.cpl.StatusPhase = uint16(st) << 1
		q.qp.Complete(r, &q.cpl)
	}
	if q.up {
		rest := copy(q.posted, q.posted[n:])
		q.posted = q.posted[:rest]
	}
	return n
}

func (q *fakeQueue) io(r *nvme.Request) nvme.Status {
	k := q.k
	k.mu.Lock()
	ns := k.ns[r.Cmd.NSID]
	k.mu.Unlock()
	if ns == nil {
		return nvme.StatusInvalidNamespace | nvme.StatusDNR
	}
	off := (uint64(r.Cmd.CDW10) | uint64(r.Cmd.CDW11)<<32) * 512
	ns.media.mu.Lock()
	defer ns.media.mu.Unlock()
	switch r.Cmd.Opcode {
	case nvme.OpRead:
		copy(r.Data.Buf, ns.media.mem[off:])
	case nvme.OpWrite:
		copy(ns.media.mem[off:], r.Data.Buf[:r.Data.Len])
	case nvme.OpCompare:
		if string(r.Data.Buf[:r.Data.Len]) != string(ns.media.mem[off:off+uint64(r.Data.Len)]) {
			return nvme.StatusCompareFailure
		}
	case nvme.OpWriteZeroes:
		clear(ns.media.mem[off : off+512*uint64(r.Cmd.CDW12&0xffff+1)])
	case nvme.OpFlush, nvme.OpDatasetManagement:
	default:
		return nvme.StatusInvalidOpcode | nvme.StatusDNR
	}
	return nvme.StatusSuccess
}

const noSuch = nvme.StatusInvalidField | nvme.StatusDNR

func (q *fakeQueue) admin(r *nvme.Request) (nvme.Status, bool) {
	k := q.k
	k.mu.Lock()
	defer k.mu.Unlock()
	switch r.Cmd.Opcode {
	case nvme.AdminIdentify:
		return k.identify(r), true
	case nvme.AdminSetFeatures:
		q.cpl.Result = uint64(r.Cmd.CDW11)
	case nvme.AdminGetFeatures, nvme.AdminKeepAlive:
	case nvme.AdminGetLogPage:
		return k.log(r), true
	case nvme.AdminAbort:
		q.cpl.Result = uint64(nvme.AbortNotPerformed)
	case nvme.AdminAsyncEvent:
		q.aers = append(q.aers, r)
		return 0, false
	default:
		return nvme.StatusInvalidOpcode | nvme.StatusDNR, true
	}
	return 0, true
}

func (k *fakeController) identify(r *nvme.Request) nvme.Status {
	ns := k.ns[r.Cmd.NSID]
	var b []byte
	switch nvme.CNS(r.Cmd.CDW10) {
	case nvme.CNSController:
		b, _ = k.id.AppendBinary(nil)
	case nvme.CNSNamespace:
		if ns == nil {
			return nvme.StatusInvalidNamespace | nvme.StatusDNR
		}
		n := uint64(len(ns.media.mem)) / 512
		id := nvme.IdentifyNamespace{NSZE: n, NCAP: n, NMIC: ns.nmic, ANAGRPID: ns.group}
		id.LBAF[0].LBADS = max(ns.flbas, 9)
		id.NSZE >>= id.LBAF[0].LBADS - 9
		b, _ = id.AppendBinary(nil)
	case nvme.CNSNamespaceDescriptors:
		if ns == nil {
			return nvme.StatusInvalidNamespace | nvme.StatusDNR
		}
		b, _ = ns.ids.AppendBinary(nil)
	case nvme.CNSActiveNamespaces:
		b = make([]byte, 4096)
		for i, id := range k.list() {
			b[4*i] = byte(id)
		}
	default:
		return noSuch
	}
	copy(r.Data.Buf, b)
	return 0
}

func (k *fakeController) list() []uint32 {
	var all []uint32
	for id := range k.ns {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

func (k *fakeController) log(r *nvme.Request) nvme.Status {
	clear(r.Data.Buf)
	if nvme.LogID(r.Cmd.CDW10&0xff) != nvme.LogANA {
		return 0
	}
	k.logs++
	log := nvme.ANALog{ChangeCount: k.change}
	for group := uint32(1); group <= 8; group++ {
		g := nvme.ANAGroup{ID: group, ChangeCount: k.change, State: nvme.ANAOptimized}
		if s, ok := k.states[group]; ok {
			g.State = s
		}
		for _, id := range k.list() {
			if k.ns[id].group == group {
				g.NSIDs = append(g.NSIDs, id)
			}
		}
		if g.NSIDs != nil {
			log.Groups = append(log.Groups, g)
		}
	}
	b, err := log.AppendBinary(nil)
	off := uint64(r.Cmd.CDW12) | uint64(r.Cmd.CDW13)<<32
	if err != nil || off > uint64(len(b)) {
		return noSuch
	}
	copy(r.Data.Buf, b[off:])
	return 0
}

// heldOn returns the commands that are withheld on I/O queues. On the core.
func (k *fakeController) heldOn() []*nvme.Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []*nvme.Request
	for id, q := range k.queues {
		if id != 0 {
			all = append(all, q.held...)
		}
	}
	return all
}
