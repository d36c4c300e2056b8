package target_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// Stages at which a hostile host begins to send what it likes.
const (
	stageRaw = iota
	stageInitialised
	stageAdmin
	stageIO
	stages
)

// FuzzHost sends bytes to a target, before and after the handshakes, with and
// without digests. Whatever they are, the target stays in order, answers with
// proper PDUs only, and forgets the host.
func FuzzHost(f *testing.F) {
	for stage := range stages {
		for _, b := range seeds() {
			f.Add(uint8(stage), uint16(0), b)
		}
	}
	cfg := oneNamespace(backend.NewLatency(backend.NewHeap(1<<20), 1))
	cfg.Subsystems[0].Namespaces = append(cfg.Subsystems[0].Namespaces,
		target.NamespaceConfig{NSID: 2, BlockSize: 4096, Backend: backend.NewHeap(1 << 20)})
	cfg.Transport = target.Transport{MaxR2T: 2, R2TLength: 8192, MaxC2HData: 64 << 10}
	l := newLab(f, cfg)
	f.Fuzz(func(t *testing.T, stage uint8, how uint16, data []byte) {
		l.t = t
		x := &fuzzed{l: l, t: t}
		x.prepare(int(stage)%stages, how)
		x.send(data, how)
		x.finish()
	})
}

// seeds are streams of PDUs as a proper host sends them.
func seeds() (list [][]byte) {
	p := pdu.Params{MaxH2CData: 1 << 20}
	cl, dl := p.Layout(pdu.TypeCapsuleCmd), p.Layout(pdu.TypeH2CData)
	capsule := func(c nvme.Command, data []byte, n int) []byte {
		c.SetSGL(nvme.SGLTransport(uint32(n)))
		if data != nil {
			c.SetSGL(nvme.SGLInCapsule(0, uint32(len(data))))
		}
		return pdu.AppendCapsuleCmd(nil, &cl, &c, data)
	}
	d, _ := nvme.NewConnectData(hostID, nvme.ControllerIDDynamic, nqn, hostNQN)
	raw, _ := d.AppendBinary(nil)
	dsm, _ := nvme.DSMCommand{NSID: 1, Ranges: 2, Deallocate: true}.Command()
	logs, _ := nvme.GetLogPageCommand{LID: nvme.LogANA, Length: 512}.Command()
	first, second := rw(nvme.OpCompare, 0, 1), write(0, 1)
	first.Flags, second.Flags = nvme.FlagFuseFirst, nvme.FlagFuseSecond
	block := make([]byte, 512)
	list = [][]byte{
		pdu.AppendICReq(nil, pdu.ICReqFields{MAXR2T: 3}),
		pdu.AppendICReq(nil, pdu.ICReqFields{HDGST: true, DDGST: true, HPDA: 7}),
		capsule(nvme.ConnectCommand{SQSize: 31}.Command(), raw, 0),
		capsule(nvme.ConnectCommand{SQSize: 31}.Command(), nil, 1024),
		capsule(nvme.NewPropertySet(nvme.RegCC, uint64(enabled)).Command(), nil, 0),
		capsule(nvme.IdentifyCommand{CNS: nvme.CNSController}.Command(), nil, 4096),
		capsule(logs, nil, 512),
		capsule(setFeature(nvme.FeatHostBehavior, 0), make([]byte, 512), 0),
		capsule(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0),
		capsule(abort(1, 1), nil, 0),
		capsule(read(0, 8), nil, 4096),
		capsule(write(0, 1), block, 0),
		append(capsule(write(0, 32), nil, 16384), pdu.AppendH2CData(nil, &dl, pdu.LastPDU, pdu.H2CDataFields{}, make([]byte, 8192))...),
		append(capsule(first, block, 0), capsule(second, block, 0)...),
		capsule(dsm, make([]byte, 32), 0),
		capsule(rw(nvme.OpWriteZeroes, 0, 8), nil, 0),
		capsule(rw(nvme.OpFlush, 0, 1), nil, 0),
		capsule(nvme.DisconnectCommand(), nil, 0),
		pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{FES: pdu.FESSequenceError}, make([]byte, 24)),
	}
	var all []byte
	for _, b := range list[9:17] {
		all = append(all, b...)
	}
	return append(list, all)
}

// fuzzed is the host of one round.
type fuzzed struct {
	l     *lab
	t     *testing.T
	h     *host
	admin *host
}

func (x *fuzzed) prepare(stage int, how uint16) {
	f := pdu.ICReqFields{HDGST: how&1 != 0, DDGST: how&2 != 0, MAXR2T: uint32(how >> 2 & 3)}
	switch stage {
	case stageRaw:
		x.h = x.l.dial()
	case stageInitialised:
		x.h = x.l.dial()
		x.h.initialise(f)
	case stageAdmin:
		x.h = x.l.adminAt(x.l.target.Ports()[0], connectOptions{}, f)
	case stageIO:
		x.admin = x.l.admin(connectOptions{})
		x.h = x.admin.queue(connectOptions{sqSize: 7}, f)
	}
}

// send sends the bytes in pieces, with digests made right if there are any.
func (x *fuzzed) send(data []byte, how uint16) {
	if x.h.params.HDGST || x.h.params.DDGST {
		data = reseal(data)
	}
	piece := max(int(how>>4&0xff), 1)
	if how>>12&1 == 0 {
		piece = max(len(data), 1)
	}
	for len(data) > 0 {
		n, e := sys.Send(x.h.fd, data[:min(piece, len(data))])
		if e != 0 && e != sys.EAGAIN && e != unix.ENOTCONN {
			return // the target has had enough
		}
		data = data[n:]
		x.l.step()
	}
}

// reseal computes the digests of PDUs as far as their headers make sense.
func reseal(b []byte) []byte {
	out := append([]byte(nil), b...)
	for rest := out; len(rest) >= pdu.CommonSize; {
		n := int(binary.LittleEndian.Uint32(rest[4:]))
		if n < pdu.CommonSize || n > len(rest) {
			break
		}
		pdu.Reseal(rest[:n])
		rest = rest[n:]
	}
	return out
}

// finish reads what the target has sent, and leaves.
func (x *fuzzed) finish() {
	r := &quietReader{h: x.h}
	reader := pdu.NewReader(r, x.h.reader.Receiver)
	for {
		p, err := reader.Next()
		if err == nil {
			if p.Type() == pdu.TypeICResp {
				// The rest is as the bytes have made it; it is read, not checked.
				_, _ = io.Copy(io.Discard, r)
				break
			}
			continue
		}
		var wrong *pdu.Error
		if errors.As(err, &wrong) {
			x.t.Errorf("the target has sent: %v", err)
		}
		break
	}
	x.h.close()
	if x.admin != nil {
		x.admin.close()
	}
	x.l.await("the host is forgotten", func() bool {
		all, handshakes := x.l.target.Connections()
		return all == 0 && handshakes == 0 && len(x.l.subsystem().Controllers()) == 0
	})
}

// quietReader reads until nothing comes any more.
type quietReader struct{ h *host }

func (r *quietReader) Read(b []byte) (int, error) {
	for range 20 {
		n, e := sys.Recv(r.h.fd, b)
		if e == 0 && n > 0 {
			return n, nil
		}
		if e != sys.EAGAIN {
			return 0, io.EOF
		}
		r.h.l.step()
	}
	return 0, io.EOF
}
