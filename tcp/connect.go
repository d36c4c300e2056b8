package tcp

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// connCold is the part of a connection that no command touches.
type connCold struct {
	t           *transport
	icreq       pdu.ICReqFields
	ended       func(error) // told once how start went
	raw         []byte
	cmd         nvme.Command
	iov         []sys.Iovec
	remote      netip.AddrPort
	flowControl bool // SQ flow control is on: SUCCESS must not be used
	linger      linger
}

func newConn(t *transport, qp *nvme.QueuePair) *conn {
	n := qp.Trackers()
	c := &conn{
		qp: qp, fd: -1,
		rx:      make([]byte, t.cfg.ReceiveBuffer),
		slots:   make([]slot, n),
		backlog: ring{buf: make([]uint16, n)},
		r2ts:    ring{buf: make([]uint16, n)},
	}
	c.tx.init()
	c.out.maxR2T = uint32(t.cfg.MaxR2T)
	c.out.r2t = make([]r2t, n*t.cfg.MaxR2T)
	c.cold.t = t
	c.cold.iov = make([]sys.Iovec, 0, 64)
	c.cold.linger.fd = -1
	return c
}

// start begins to connect; ended is told once, on the core, how that went.
func (c *conn) start(local, remote netip.AddrPort, ended func(error)) {
	if c.state != connIdle {
		ended(errors.New("nvme/tcp: already connected"))
		return
	}
	c.endLinger()
	c.reset()
	c.cold.ended, c.cold.remote = ended, remote
	fd, err := c.dial(local, remote)
	if err != nil {
		c.end(err)
		return
	}
	c.fd, c.state = fd, connDialling
}

func (c *conn) dial(local, remote netip.AddrPort) (fd int, err error) {
	fd, err = sys.Socket(sys.Family(remote.Addr()))
	if err != nil {
		return -1, err
	}
	if err = c.cold.t.cfg.apply(fd, remote); err == nil && c.cold.t.addr.HostIface != "" {
		err = sys.BindToDevice(fd, c.cold.t.addr.HostIface)
	}
	if err == nil && local.IsValid() {
		err = sys.Bind(fd, local)
	}
	if err == nil {
		if err = sys.Connect(fd, remote); errors.Is(err, sys.EINPROGRESS) {
			err = nil
		}
	}
	if err != nil {
		sys.Close(fd)
		return -1, err
	}
	return fd, nil
}

// apply sets the socket options.
func (c *Config) apply(fd int, remote netip.AddrPort) error {
	if err := sys.SetNoDelay(fd, !c.NoDelayOff); err != nil {
		return err
	}
	if c.TOS != 0 {
		if err := sys.SetTOS(fd, sys.Family(remote.Addr()), c.TOS); err != nil {
			return err
		}
	}
	if c.Priority != 0 {
		if err := sys.SetPriority(fd, c.Priority); err != nil {
			return err
		}
	}
	if c.Congestion != "" {
		if err := sys.SetCongestion(fd, c.Congestion); err != nil {
			return fmt.Errorf("congestion control %q: %w", c.Congestion, err)
		}
	}
	if c.SendBuffer > 0 {
		if err := sys.SetSendBuffer(fd, c.SendBuffer); err != nil {
			return err
		}
	}
	if c.RecvBuffer > 0 {
		return sys.SetRecvBuffer(fd, c.RecvBuffer)
	}
	return nil
}

// pollConnect is Poll while commands do not flow yet.
func (c *conn) pollConnect() int {
	switch c.state {
	case connIdle:
		return c.refuse()
	case connDialling:
		return c.pollDial()
	}
	work := c.receive()
	if c.state != connIdle && c.backlog.n > 0 {
		c.fill()
	}
	if c.state != connIdle && c.tx.pending() {
		work += c.flush()
	}
	return work
}

// refuse ends what was posted without a connection, since nothing else would.
func (c *conn) refuse() int {
	if c.qp.InFlight() == 0 {
		return 0
	}
	c.reset()
	c.qp.Quiesced()
	return 1
}

func (c *conn) pollDial() int {
	fds := []sys.PollFd{{Fd: int32(c.fd), Events: sys.POLLOUT}}
	if n, _ := sys.Ppoll(fds, 0); n == 0 {
		return 0
	}
	e, err := sys.SockError(c.fd)
	if err == nil && e != 0 {
		err = e
	}
	if err != nil {
		c.fail(fmt.Errorf("connect: %w", err))
		return 1
	}
	f := pdu.ICReqFields{
		HPDA: c.cold.t.cfg.HPDA, HDGST: c.cold.t.cfg.HeaderDigest, DDGST: c.cold.t.cfg.DataDigest,
		MAXR2T: c.out.maxR2T - 1,
	}
	c.cold.icreq = f
	c.receiver = pdu.NewConnectReceiver(pdu.Host)
	b := c.tx.reserve(pdu.ICReqSize)
	(*pdu.ICReq)(b).Encode(f)
	c.tx.commit(pdu.ICReqSize)
	c.state = connHandshake
	return 1
}

// initialised takes the ICResp and goes on with the fabrics Connect.
func (c *conn) initialised(h *pdu.ICResp) bool {
	if err := h.Check(c.cold.icreq); err != nil {
		c.protocolError(err, h[:])
		return false
	}
	p := h.Params(c.cold.icreq)
	if want := c.cold.icreq; want.HDGST && !p.HDGST || want.DDGST && !p.DDGST {
		c.fail(&DigestError{Header: want.HDGST && !p.HDGST, Data: want.DDGST && !p.DDGST})
		return false
	}
	c.head += pdu.ICRespSize
	c.receiver = pdu.NewReceiver(pdu.Host, p, pdu.Limits{})
	c.out.capsule, c.out.data = p.Layout(pdu.TypeCapsuleCmd), p.Layout(pdu.TypeH2CData)
	c.out.maxH2C = p.MaxH2CData
	c.out.icd = c.inCapsule()
	c.state = connFabrics
	if err := c.sendConnect(); err != nil {
		c.fail(err)
		return false
	}
	return true
}

// inCapsule returns how much data a capsule of this queue may carry. Admin
// queues take 8 KiB; I/O queues what IOCCSZ says.
func (c *conn) inCapsule() uint32 {
	if c.qp.ID() == 0 {
		return pdu.MinICD
	}
	return c.cold.t.icd.Load()
}

// sendConnect posts the fabrics Connect command.
func (c *conn) sendConnect() error {
	t := c.cold.t
	cntlid := nvme.ControllerIDDynamic
	if c.qp.ID() != 0 {
		cntlid = uint16(t.cntlid.Load())
	}
	d, err := nvme.NewConnectData(t.host.id, cntlid, t.subnqn, t.host.nqn)
	if err != nil {
		return err
	}
	if c.cold.raw, err = d.AppendBinary(c.cold.raw[:0]); err != nil {
		return err
	}
	cc := nvme.ConnectCommand{QID: c.qp.ID(), SQSize: uint16(c.qp.Size() - 1)}
	if c.cold.flowControl = t.flowControl.Load(); !c.cold.flowControl {
		cc.Attributes |= nvme.ConnectDisableFlowControl
	}
	if c.qp.ID() == 0 {
		cc.KeepAlive = t.kato
	}
	c.cold.cmd = cc.Command()
	data := nvme.Data{Buf: c.cold.raw, Len: uint32(len(c.cold.raw)), Dir: nvme.DirOut}
	if !c.qp.PostInternal(&c.cold.cmd, data, connected, c) {
		return errors.New("nvme/tcp: no tracker for Connect")
	}
	return nil
}

// connected is told how the fabrics Connect went.
func connected(arg any, cpl *nvme.Completion) {
	c := arg.(*conn)
	if c.state != connFabrics {
		return // aborted with the connection, which has its own error
	}
	if st := cpl.Status(); !st.OK() {
		c.fail(connectError(st, cpl.Result, c.qp.ID()))
		return
	}
	resp := nvme.ParseConnectResponse(cpl.Result)
	if resp.AuthRequired || resp.SecureRequired {
		c.fail(ErrAuthentication)
		return
	}
	if c.qp.ID() == 0 {
		c.cold.t.cntlid.Store(uint32(resp.ControllerID))
	}
	c.state = connReady
	c.end(nil)
}

func (c *conn) end(err error) {
	if f := c.cold.ended; f != nil {
		c.cold.ended = nil
		f(err)
	}
}

// reset forgets all of the connection before.
func (c *conn) reset() {
	c.tx.reset()
	c.backlog.reset()
	c.r2ts.reset()
	clear(c.slots)
	c.head, c.tail, c.mode, c.in, c.idleAt = 0, 0, rxHeader, inbound{}, 0
}

// fail ends the connection: it is lost, and quiet.
func (c *conn) fail(err error) {
	if c.state == connIdle {
		return
	}
	ready := c.state == connReady
	c.state = connIdle
	if c.cold.linger.fd != c.fd {
		sys.Close(c.fd)
	}
	c.fd = -1
	c.reset()
	if ready {
		c.qp.Lost(err)
	}
	c.qp.Quiesced()
	c.end(err)
}

// stop is fail at the host's own wish.
func (c *conn) stop(err error) {
	if c.state == connIdle {
		c.qp.Quiesced()
		return
	}
	c.state = min(c.state, connFabrics) // not a loss to report
	c.fail(err)
}

// finishEarly finishes commands that completed while their memory stood in the
// send queue.
func (c *conn) finishEarly() {
	for i := range c.slots {
		s := &c.slots[i]
		if !s.early || s.refs != 0 {
			continue
		}
		s.early = false
		c.cpl = s.status
		c.qp.Complete(c.qp.Tracker(i), &c.cpl)
	}
}

// linger is a connection that was given up and whose peer is to read our last
// words: closing at once would reset the connection and discard them.
type linger struct {
	fd    int
	until int64
	buf   [4096]byte
}

const lingerTime = int64(time.Second)

// beginLinger keeps the socket for a while, its sending side shut.
func (c *conn) beginLinger() {
	l := &c.cold.linger
	if sys.Shutdown(c.fd, sys.SHUT_WR) != nil {
		return
	}
	c.endLinger()
	l.fd, l.until = c.fd, c.qp.Poller().Now()+lingerTime
	t := c.cold.t
	t.mu.Lock()
	t.lingering[c] = struct{}{}
	t.mu.Unlock()
	c.qp.Poller().AfterFunc(time.Millisecond, func() { c.pollLinger(l.fd) })
}

func (c *conn) pollLinger(fd int) {
	l := &c.cold.linger
	if l.fd != fd || fd < 0 {
		return
	}
	if c.qp.Poller().Now() >= l.until {
		c.endLinger()
		return
	}
	for range 64 {
		n, err := sys.Recv(fd, l.buf[:])
		if err == sys.EAGAIN {
			break
		}
		if err != 0 || n == 0 {
			c.endLinger()
			return
		}
	}
	c.qp.Poller().AfterFunc(5*time.Millisecond, func() { c.pollLinger(fd) })
}

func (c *conn) endLinger() {
	if l := &c.cold.linger; l.fd >= 0 {
		sys.Close(l.fd)
		l.fd = -1
		t := c.cold.t
		t.mu.Lock()
		delete(t.lingering, c)
		t.mu.Unlock()
	}
}
