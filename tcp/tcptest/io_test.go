package tcptest_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// Reads and writes of all kinds, with the transfer cut up as the fields say.
func TestControllerIO(t *testing.T) {
	for _, digests := range []bool{false, true} {
		k, ns := disk(256)
		k.C2HData, k.R2TLength, k.R2Ts = 5000, 3000, 2
		s := start(t, k.Serve, nil)
		admin(t, s)
		h := ioQueue(t, s, pdu.ICReqFields{HDGST: digests, DDGST: digests, HPDA: 3, MAXR2T: 7})
		data := make([]byte, 16<<10)
		for i := range data {
			data[i] = byte(i * 7)
		}
		rw := func(op nvme.Opcode, lba, blocks int) nvme.Command {
			return nvme.Command{Opcode: op, NSID: 1, CDW10: uint32(lba), CDW12: uint32(blocks - 1)}
		}
		r2ts, st := h.write(rw(nvme.OpWrite, 10, 32), data)
		if wantStatus(t, "write", st, 0); r2ts != 6 {
			t.Errorf("%d R2Ts", r2ts)
		}
		media := make([]byte, len(data))
		if n, err := ns.ReadAt(media, 10*512); n != len(media) || err != nil {
			t.Error(n, err)
		}
		equal(t, "media", media, data)
		got, pdus, st := h.read(rw(nvme.OpRead, 10, 32), 16<<10)
		wantStatus(t, "read", st, 0)
		equal(t, "read", got, data)
		if pdus != 4 {
			t.Errorf("%d PDUs", pdus)
		}
		wantStatus(t, "write in capsule", h.do(rw(nvme.OpWrite, 0, 8), data[:4096]).Status(), 0)
		wantStatus(t, "compare", h.do(rw(nvme.OpCompare, 0, 8), data[:4096]).Status(), 0)
		wantStatus(t, "compare with something else", h.do(rw(nvme.OpCompare, 0, 8), data[1:4097]).Status(), nvme.StatusCompareFailure)
		wantStatus(t, "zeroes", h.do(rw(nvme.OpWriteZeroes, 0, 4), nil).Status(), 0)
		wantStatus(t, "compare zeroes", h.do(rw(nvme.OpCompare, 0, 4), make([]byte, 2048)).Status(), 0)
		ranges := make([]byte, 32)
		binary.LittleEndian.PutUint32(ranges[4:], 1)
		binary.LittleEndian.PutUint64(ranges[8:], 5)
		binary.LittleEndian.PutUint32(ranges[20:], 2)
		binary.LittleEndian.PutUint64(ranges[24:], 6)
		dsm := nvme.Command{Opcode: nvme.OpDatasetManagement, NSID: 1, CDW10: 1, CDW11: 4}
		wantStatus(t, "deallocate", h.do(dsm, ranges).Status(), 0)
		wantStatus(t, "compare deallocated", h.do(rw(nvme.OpCompare, 5, 3), make([]byte, 1536)).Status(), 0)
		wantStatus(t, "short range list", h.do(dsm, ranges[:16]).Status(), nvme.StatusDataSGLLengthInvalid)
		wantStatus(t, "verify", h.do(rw(nvme.OpVerify, 0, 256), nil).Status(), 0)
		wantStatus(t, "flush", h.do(nvme.Command{Opcode: nvme.OpFlush, NSID: 0xffffffff}, nil).Status(), 0)
		wantStatus(t, "beyond the end", h.do(rw(nvme.OpVerify, 0, 257), nil).Status(), nvme.StatusLBAOutOfRange)
		_, _, st = h.read(rw(nvme.OpRead, 256, 1), 512)
		wantStatus(t, "read beyond the end", st, nvme.StatusLBAOutOfRange)
		_, _, st = h.read(rw(nvme.OpRead, 0, 2), 512)
		wantStatus(t, "length", st, nvme.StatusDataSGLLengthInvalid)
		wantStatus(t, "length of a write", h.do(rw(nvme.OpWrite, 0, 2), data[:512]).Status(), nvme.StatusDataSGLLengthInvalid)
		h.nc.Close()
		wantErr(t, s.Err())
	}
}

// SUCCESS replaces the response where that is allowed.
func TestControllerSuccess(t *testing.T) {
	for _, flowControl := range []bool{false, true} {
		k, _ := disk(64)
		k.Success = true
		s := start(t, k.Serve, nil)
		admin(t, s)
		h := dial(t, s).handshake(pdu.ICReqFields{})
		h.connect(1, func(c *nvme.ConnectCommand, _ *nvme.ConnectData) {
			if flowControl {
				c.Attributes = 0
			}
		})
		h.post(nvme.Command{}, nil) // an error, whose SQ head counts with flow control
		var cpl nvme.Completion
		(*pdu.CapsuleResp)(h.next().Header).Completion(&cpl)
		if head := cpl.SQHead; flowControl && head != 2 || !flowControl && head != 0 {
			t.Errorf("flow control %v: SQ head %d", flowControl, head)
		}
		cmd := nvme.Command{Opcode: nvme.OpRead, NSID: 1}
		cmd.SetSGL(nvme.SGLTransport(512))
		h.post(cmd, nil)
		p := h.next()
		if got := p.Flags()&pdu.Success != 0; got == flowControl {
			t.Errorf("flow control %v: SUCCESS %v", flowControl, got)
		}
	}
}

// Compare and Write writes if the compare has succeeded.
func TestControllerFused(t *testing.T) {
	k, ns := disk(64)
	s := start(t, k.Serve, nil)
	admin(t, s)
	h := ioQueue(t, s, pdu.ICReqFields{})
	fused := func(op nvme.Opcode, flag uint8) nvme.Command { return nvme.Command{Opcode: op, Flags: flag, NSID: 1} }
	pair := func(compare, write []byte) (a, b nvme.Status) {
		first, second := h.post(fused(nvme.OpCompare, nvme.FlagFuseFirst), compare), h.post(fused(nvme.OpWrite, nvme.FlagFuseSecond), write)
		return h.response(first).Status(), h.response(second).Status()
	}
	zero, ones := make([]byte, 512), []byte(sprintf("%0512d", 1))
	a, b := pair(ones, ones)
	wantStatus(t, "compare", a, nvme.StatusCompareFailure)
	wantStatus(t, "write", b, nvme.StatusAbortedFailedFused)
	got := make([]byte, 512)
	_, _ = ns.ReadAt(got, 0)
	equal(t, "media", got, zero)
	a, b = pair(zero, ones)
	wantStatus(t, "compare", a, 0)
	wantStatus(t, "write", b, 0)
	_, _ = ns.ReadAt(got, 0)
	equal(t, "media", got, ones)
	wantStatus(t, "second alone", h.do(fused(nvme.OpWrite, nvme.FlagFuseSecond), ones).Status(), nvme.StatusAbortedMissingFused)
	wantStatus(t, "wrong opcode", h.do(fused(nvme.OpWrite, nvme.FlagFuseFirst), ones).Status(), nvme.StatusInvalidField)
}

// PDUs that belong to other commands while the data of one is waited for.
func TestReceiveSetsAside(t *testing.T) {
	k, _ := disk(64)
	s := start(t, k.Serve, nil)
	admin(t, s)
	h := ioQueue(t, s, pdu.ICReqFields{})
	write := nvme.Command{Opcode: nvme.OpWrite, NSID: 1}
	write.SetSGL(nvme.SGLTransport(512))
	first := h.post(write, nil)
	r2t := (*pdu.R2T)(h.next().Header)
	f := pdu.H2CDataFields{CCCID: first, TTAG: r2t.TTAG()}
	var cids []uint16
	for range 10 {
		cids = append(cids, h.post(nvme.Command{Opcode: nvme.OpFlush, NSID: 1}, nil))
	}
	l := h.params.Layout(pdu.TypeH2CData)
	h.send(pdu.AppendH2CData(nil, &l, pdu.LastPDU, f, make([]byte, 512)))
	for _, cid := range append([]uint16{first}, cids...) {
		wantStatus(t, fmt.Sprint("command ", cid), h.response(cid).Status(), 0)
	}
	h.nc.Close()
	wantErr(t, s.Err())
}

// Namespaces that cannot be are a mistake in the test.
func TestBadNamespace(t *testing.T) {
	for _, tt := range []struct {
		blocks uint64
		size   uint32
	}{{0, 512}, {1, 256}, {1, 513}, {1 << 22, 512}, {1 << 60, 4096}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d blocks of %d bytes", tt.blocks, tt.size)
				}
			}()
			tcptest.NewNamespace(tt.blocks, tt.size)
		}()
	}
}
