package tcptest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Controller is a controller that behaves well, as far as its fields let it.
// The zero value works and has no namespaces; see AddNamespace. Its Serve is
// the script for a Server. Fields must be set before that is used.
//
// A violation of the protocol by the host is a failure of the script. An
// H2CTermReq is one as well, unless AwaitTermReq takes it.
type Controller struct {
	// SubNQN is the name of the subsystem. Empty: whatever the host calls it.
	SubNQN string
	// HostNQN is the only host allowed. Empty: any.
	HostNQN string
	// ID is the controller identifier. 0: 1.
	ID uint16
	// CAP and VS are the properties of these names. 0: 1024 queue entries,
	// CAP.TO of 1 s, the NVM command set, version 2.0.
	CAP nvme.CAP
	VS  nvme.VS
	// CSTS gives the controller status for a configuration, n being the number
	// of times that it was read since the configuration was last written. Nil:
	// ready at once when enabled, shut down at once when asked.
	CSTS func(cc nvme.CC, n int) nvme.CSTS
	// Identify changes the Identify Controller data that the controller would
	// give.
	Identify func(id *nvme.IdentifyController)
	// Queues is the number of I/O queues that it grants. 0: 16.
	Queues int

	// ICResp gives the answer to an ICReq. Nil: what was asked for.
	ICResp func(req pdu.ICReqFields) pdu.ICRespFields
	// InCapsule is the in-capsule data in bytes that I/O queues take, a
	// multiple of 16. 0: 4096; negative: none.
	InCapsule int
	// C2HData bounds the data of one C2HData in bytes. 0: no bound.
	C2HData int
	// Success ends reads with SUCCESS in place of a response, where the host
	// has turned submission queue flow control off.
	Success bool
	// R2TLength bounds what one R2T asks for in bytes, 0: no bound, and R2Ts
	// is how many are outstanding for a command, at most what the host takes;
	// 0: 1.
	R2TLength uint32
	R2Ts      int
	// Chunk, Pause and AfterChunk go to the connections' fields of these names.
	Chunk      int
	Pause      time.Duration
	AfterChunk func()

	// Override sees every command before the controller does, Connect and the
	// properties included, and returns true if it has answered it, will do so
	// later, or wants it left unanswered. It is called on the goroutine of the
	// connection that the command came on.
	Override func(r *Request) bool

	mu         sync.Mutex
	namespaces map[uint32]*Namespace
	subnqn     string
	cc         nvme.CC
	cstsReads  int
	kato       time.Duration
	features   map[nvme.FeatureID]uint32
	changed    []uint32 // the changed namespace list
	aers       []*Request
	events     []nvme.AsyncEvent // that no request is there for
	queues     map[uint16]*queue
	terms      []*termReq
	termed     chan struct{} // holds one: something was added to terms
}

// queue is the controller's side of a connected queue.
type queue struct {
	id   uint16
	size uint32
	off  bool // flow control is

	mu   sync.Mutex
	seen uint32 // commands

	fused nvme.Status // of the first command of a fused pair; serve only
	first bool        // the command before was one
}

// head returns the submission queue head for a completion.
func (q *queue) head() uint16 {
	if q.off || q.size == 0 {
		return 0 // reserved, or not connected
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return uint16(q.seen % q.size)
}

func (q *queue) count() {
	q.mu.Lock()
	q.seen++
	q.mu.Unlock()
}

// termReq is an H2CTermReq that arrived.
type termReq struct {
	err   *pdu.PeerError
	index int // of the connection
}

// maxTermReqs bounds those that are kept.
const maxTermReqs = 64

// AddNamespace makes ns active as namespace nsid.
func (k *Controller) AddNamespace(nsid uint32, ns *Namespace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.namespaces == nil {
		k.namespaces = map[uint32]*Namespace{}
	}
	k.namespaces[nsid] = ns
}

// RemoveNamespace makes namespace nsid inactive.
func (k *Controller) RemoveNamespace(nsid uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.namespaces, nsid)
}

func (k *Controller) namespace(nsid uint32) *Namespace {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.namespaces[nsid]
}

// KeepAliveTimeout returns what the host asked for in its last Connect of the
// admin queue.
func (k *Controller) KeepAliveTimeout() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kato
}

// Configuration returns the controller configuration as last written.
func (k *Controller) Configuration() nvme.CC {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cc
}

// Feature returns the value that the host last set a feature to.
func (k *Controller) Feature(id nvme.FeatureID) (v uint32, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok = k.features[id]
	return v, ok
}

// termSignal returns the channel that AwaitTermReq waits on.
func (k *Controller) termSignal() chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.termed == nil {
		k.termed = make(chan struct{}, 1)
	}
	return k.termed
}

// AwaitTermReq waits for an H2CTermReq on a connection and returns it. Each is
// returned once.
func (k *Controller) AwaitTermReq(tb testing.TB) *pdu.PeerError {
	tb.Helper()
	signal := k.termSignal()
	t := time.NewTimer(20 * time.Second)
	defer t.Stop()
	for {
		k.mu.Lock()
		if len(k.terms) > 0 {
			e := k.terms[0].err
			k.terms = k.terms[1:]
			k.mu.Unlock()
			return e
		}
		k.mu.Unlock()
		select {
		case <-signal:
		case <-t.C:
			tb.Fatal("tcptest: no H2CTermReq arrived")
		}
	}
}

// Check returns an error for each H2CTermReq that AwaitTermReq has not taken.
func (k *Controller) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, t := range k.terms {
		errs = append(errs, t.err)
	}
	return errors.Join(errs...)
}

// NewController is New for a controller: it starts a Server that plays k on
// all connections, and also fails the test if an H2CTermReq came that
// AwaitTermReq has not taken.
func NewController(tb testing.TB, k *Controller, cfg *Config) *Server {
	tb.Helper()
	s := New(tb, k.Serve, cfg)
	tb.Cleanup(func() {
		if err := k.Check(); err != nil {
			tb.Error("tcptest: not expected:", err)
		}
	})
	return s
}
