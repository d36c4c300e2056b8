package tcp_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// FuzzReceive has a hostile controller send anything once the connection is
// up and commands are outstanding. The input is a program: a byte for the
// digests, then instructions that each build a PDU of the right form with
// fields from the input, so that the fuzzer gets past the first checks, or
// send bytes as they are.
//
// Whatever comes, nothing panics or hangs, no memory is touched but that of
// reads, what is written is not changed, little is allocated, and each command
// completes once.
func FuzzReceive(f *testing.F) {
	for _, seed := range hostileSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 16<<10 {
			return
		}
		newHostile(t, program).run()
	})
}

// Instructions; each is followed by its operands.
const (
	doRaw      = iota // length, bytes
	doResponse        // command, status (2)
	doData            // command, flags, offset (2), length (2)
	doR2T             // command, tag, offset (2), length (4)
	doTermReq         // FES (2), FEI (4), length
	doICResp          // nothing
	doDamage          // where (2), with what: in the PDU that follows
	doCut             // where (2): the PDU that follows is cut there
	doInOrder         // command, flags, length (2): data where it continues
	instructions
)

type hostile struct {
	t       *testing.T
	r       *rig
	program []byte
	cids    []uint16
	next    [8]uint32 // where the data of a command continues

	memory []byte // of the reads, and what is between them
	reads  [][2]int
	writes [][]byte

	damageAt, damageBy int
	cutAt              int
}

func newHostile(t *testing.T, program []byte) *hostile {
	h := &hostile{t: t, program: program}
	digests := h.byte()
	cfg := digestRig(digests&1 != 0, digests&2 != 0)
	cfg.tcp.ReceiveBuffer, cfg.tcp.MaxR2T = 16<<10, 1+int(digests>>2&3)
	cfg.tcp.SQFlowControl = digests&0x10 != 0
	cfg.icresp.MAXH2CDATA, cfg.inCapsule = 4096, 512
	h.r = newRig(t, cfg)
	h.submit()
	return h
}

const guard = 0xa5

// submit has three reads and three writes outstanding, and a flush.
func (h *hostile) submit() {
	r := h.r
	sizes := []int{512, 4096, 40 << 10}
	h.memory = bytes.Repeat([]byte{guard}, 64<<10)
	at := 100
	for i, n := range sizes {
		buf := h.memory[at : at+n : at+n]
		h.reads = append(h.reads, [2]int{at, at + n})
		at += n + 100
		if i == 2 {
			r.readV([][]byte{buf[:1], buf[1:20_000], nil, buf[20_000:]}, uint64(i))
		} else {
			r.read(buf, uint64(i))
		}
	}
	for i, n := range sizes {
		data := pattern(make([]byte, n), uint64(n))
		h.writes = append(h.writes, data)
		if i == 2 {
			r.writeV([][]byte{data[:9000], data[9000:9001], data[9001:]}, uint64(3+i))
		} else {
			r.write(data, uint64(3+i))
		}
	}
	o := r.ops.add("flush")
	r.must(r.q.Flush(opDone, o))
	r.flush()
	for range 7 {
		h.cids = append(h.cids, (*pdu.CapsuleCmd)(r.peer.Expect(pdu.TypeCapsuleCmd).Header).CID())
	}
}

func (h *hostile) byte() byte {
	if len(h.program) == 0 {
		return 0
	}
	b := h.program[0]
	h.program = h.program[1:]
	return b
}

func (h *hostile) u16() uint32 { return uint32(h.byte()) | uint32(h.byte())<<8 }

func (h *hostile) u32() uint32 { return h.u16() | h.u16()<<16 }

// cid is that of one of the commands, or any.
func (h *hostile) cid() (cid uint16, i int) {
	b := int(h.byte())
	if b < 200 {
		i = b % len(h.cids)
		return h.cids[i], i
	}
	return uint16(h.u16()), 7
}

func (h *hostile) run() {
	r := h.r
	go r.peer.Drain() // whatever the host sends
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for len(h.program) > 0 && r.qp.Live() {
		if b := h.instruction(); len(b) > 0 {
			h.send(b)
		}
	}
	if n := tcp.Pending(r.qp); n > 1<<20 {
		h.t.Errorf("%d bytes in the send queue for %d bytes of data", n, 45<<10)
	}
	r.peer.CloseWrite()
	r.lost()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		h.t.Errorf("%d bytes were allocated", n)
	}
	h.check()
}

// instruction carries out one, and returns what it has to send.
func (h *hostile) instruction() (b []byte) {
	c := h.r.peer
	switch h.byte() % instructions {
	case doRaw:
		n := min(int(h.byte()), len(h.program))
		b, h.program = h.program[:n], h.program[n:]
		return bytes.Clone(b)
	case doResponse:
		cid, _ := h.cid()
		b = c.CapsuleResp(&nvme.Completion{CID: cid, StatusPhase: uint16(h.u16())})
	case doData:
		cid, _ := h.cid()
		flags, off := pdu.Flags(h.byte())&(pdu.LastPDU|pdu.Success), h.u16()
		b = c.C2HData(flags, cid, off, pattern(make([]byte, h.u16()), 1))
	case doInOrder:
		cid, i := h.cid()
		flags, n := pdu.Flags(h.byte())&(pdu.LastPDU|pdu.Success), h.u16()
		b = c.C2HData(flags, cid, h.next[i], pattern(make([]byte, n), 1))
		h.next[i] += n
	case doR2T:
		cid, _ := h.cid()
		b = c.R2T(cid, uint16(h.byte()), h.u16(), h.u32())
	case doTermReq:
		b = tcptest.TermReq(pdu.FES(h.u16()), h.u32(), make([]byte, int(h.byte())))
	case doICResp:
		b = pdu.AppendICResp(nil, pdu.ICRespFields{MAXH2CDATA: 4096})
	case doDamage:
		h.damageAt, h.damageBy = int(h.u16()), int(h.byte())
		return nil
	case doCut:
		h.cutAt = int(h.u16())
		return nil
	}
	if h.damageBy != 0 && h.damageAt < len(b) {
		b[h.damageAt] ^= byte(h.damageBy)
		if h.damageBy&1 != 0 {
			pdu.Reseal(b)
		}
		h.damageBy = 0
	}
	return b
}

// send sends b, in two pieces if that was asked for.
func (h *hostile) send(b []byte) {
	cut := h.cutAt
	h.cutAt = 0
	h.r.feed(b, cut)
}

// check looks at what is left behind.
func (h *hostile) check() {
	at := 0
	for _, part := range append(h.reads, [2]int{len(h.memory), len(h.memory)}) {
		for i := at; i < part[0]; i++ {
			if h.memory[i] != guard {
				h.t.Fatalf("byte %d, which belongs to no read, was changed", i)
			}
		}
		at = part[1]
	}
	for i, data := range h.writes {
		if !bytes.Equal(data, pattern(make([]byte, len(data)), uint64(len(data)))) {
			h.t.Errorf("the data of write %d was changed", i)
		}
	}
	for _, o := range h.r.ops {
		if !o.isDone() {
			h.t.Errorf("%s: not completed, and the connection is lost", o.name)
		}
	}
	h.r.close() // checks that each has completed once
}

// hostileSeeds are programs that go deep.
func hostileSeeds() [][]byte {
	le := binary.LittleEndian
	u16 := func(v uint16) []byte { return le.AppendUint16(nil, v) }
	u32 := func(v uint32) []byte { return le.AppendUint32(nil, v) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	data := func(cmd, flags byte, off, n uint16) []byte { return join([]byte{doData, cmd, flags}, u16(off), u16(n)) }
	inOrder := func(cmd, flags byte, n uint16) []byte { return join([]byte{doInOrder, cmd, flags}, u16(n)) }
	response := func(cmd byte, status uint16) []byte { return join([]byte{doResponse, cmd}, u16(status)) }
	r2t := func(cmd, tag byte, off uint16, n uint32) []byte {
		return join([]byte{doR2T, cmd, tag}, u16(off), u32(n))
	}
	cut := func(at uint16) []byte { return join([]byte{doCut}, u16(at)) }
	damage := func(at uint16, by byte) []byte { return join([]byte{doDamage}, u16(at), []byte{by}) }
	const last, success = byte(pdu.LastPDU), byte(pdu.Success)
	var seeds [][]byte
	for digests := range byte(4) {
		d := []byte{digests}
		seeds = append(seeds,
			join(d, data(0, last|success, 0, 512), data(1, 0, 0, 100), inOrder(2, 0, 1000), inOrder(2, last, 39<<10), response(2, 0)),
			join(d, cut(30), data(0, last, 0, 512), cut(3), response(0, 0), response(3, 0), response(6, 0)),
			join(d, r2t(4, 1, 0, 4096), r2t(5, 2, 0, 20_000), cut(7), r2t(5, 3, 20_000, 20_960), response(5, 0), response(4, 2)),
			join(d, r2t(5, 1, 0, 40<<10), response(5, 0x100), r2t(4, 1, 100, 100)),
			join(d, []byte{doTermReq}, u16(9), u32(1), []byte{200}),
			join(d, []byte{doICResp}, []byte{doRaw, 3, 1, 2, 3}),
			join(d, damage(2, 0x10), data(1, last, 0, 4096)),
			join(d, damage(5, 0x11), data(2, last, 0, 4096)),
			join(d, damage(3, 0x21), data(1, 0, 0, 64), inOrder(2, 0, 40_000)),
			join(d, damage(200, 0x10), data(1, last, 0, 4096), response(1, 0)),
			join(d, data(0, success, 0, 512)),
			join(d, response(200, 5), []byte{doRaw, 8, 9, 0, 24, 0, 24, 0, 0, 0}),
		)
	}
	return seeds
}
