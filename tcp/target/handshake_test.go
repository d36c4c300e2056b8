package target_test

import (
	"slices"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

func TestICResp(t *testing.T) {
	for _, c := range []struct {
		name string
		tr   target.Transport
		req  pdu.ICReqFields
		want pdu.ICRespFields
	}{
		{"zero", target.Transport{}, pdu.ICReqFields{}, pdu.ICRespFields{MAXH2CDATA: 1 << 20}},
		{"digests", target.Transport{MaxH2CData: 4096, CPDA: 3}, pdu.ICReqFields{HDGST: true, DDGST: true},
			pdu.ICRespFields{HDGST: true, DDGST: true, CPDA: 3, MAXH2CDATA: 4096}},
		{"declined", target.Transport{HeaderDigest: target.DigestDeclined}, pdu.ICReqFields{HDGST: true, DDGST: true},
			pdu.ICRespFields{DDGST: true, MAXH2CDATA: 1 << 20}},
		{"required and asked for", target.Transport{DataDigest: target.DigestRequired}, pdu.ICReqFields{DDGST: true},
			pdu.ICRespFields{DDGST: true, MAXH2CDATA: 1 << 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := oneNamespace(backend.NewNull(1 << 20))
			cfg.Transport = c.tr
			h := newLab(t, cfg).dial()
			h.send(pdu.AppendICReq(nil, c.req))
			p := h.nextOf(pdu.TypeICResp)
			same(t, "ICResp", p.Header, pdu.AppendICResp(nil, c.want))
		})
	}
}

// badPDU is bytes that the target must not put up with, and what it answers.
type badPDU struct {
	name  string
	bytes []byte
	fes   pdu.FES
	fei   uint32
	head  int // of the offending PDU that comes back
}

// set returns b with some bytes replaced.
func set(b []byte, at int, v ...byte) []byte {
	b = slices.Clone(b)
	copy(b[at:], v)
	return b
}

func checkBad(t *testing.T, c badPDU, connect func(*testing.T) *host) {
	t.Run(c.name, func(t *testing.T) {
		h := connect(t)
		h.send(c.bytes)
		e := h.terminated()
		if e.FES != c.fes || e.FEI != c.fei {
			t.Errorf("FES %v, FEI %#x, want %v, %#x", e.FES, e.FEI, c.fes, c.fei)
		}
		same(t, "offending header", e.Header, c.bytes[:c.head])
		h.close()
		h.l.await("the connection is forgotten", func() bool { all, _ := h.l.target.Connections(); return all == 0 })
	})
}

func TestBadHandshake(t *testing.T) {
	ic := pdu.AppendICReq(nil, pdu.ICReqFields{})
	lay := pdu.Params{}.Layout(pdu.TypeCapsuleCmd)
	capsule := pdu.AppendCapsuleCmd(nil, &lay, &nvme.Command{}, nil)
	for _, c := range []badPDU{
		{"unknown type", set(ic, 0, 0x0b), pdu.FESInvalidHeaderField, 0, 8},
		{"type of the other direction", set(ic, 0, 0x01), pdu.FESInvalidHeaderField, 0, 128},
		{"capsule first", capsule, pdu.FESSequenceError, 0, 72},
		{"HLEN", set(ic, 2, 127), pdu.FESInvalidHeaderField, 2, 128},
		{"PLEN", set(ic, 4, 129), pdu.FESInvalidHeaderField, 4, 128},
		{"PFV", set(ic, 8, 1), pdu.FESUnsupportedParameter, 8, 128},
		{"HPDA", set(ic, 10, 32), pdu.FESInvalidHeaderField, 10, 128},
	} {
		checkBad(t, c, func(t *testing.T) *host { return newLab(t, oneNamespace(backend.NewNull(1<<20))).dial() })
	}
}

func TestDigestRequired(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Transport.HeaderDigest = target.DigestRequired
	ic := pdu.AppendICReq(nil, pdu.ICReqFields{DDGST: true})
	c := badPDU{"not asked for", ic, pdu.FESUnsupportedParameter, 11, 128}
	checkBad(t, c, func(t *testing.T) *host { return newLab(t, cfg).dial() })
}

// TestByteByByte sends a whole association one byte at a time.
func TestByteByByte(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewHeap(1<<20)))
	h := l.dial()
	slow := func(b []byte) {
		for i := range b {
			h.send(b[i : i+1])
			l.step()
		}
	}
	f := pdu.ICReqFields{HDGST: true, DDGST: true}
	slow(pdu.AppendICReq(nil, f))
	resp := (*pdu.ICResp)(h.nextOf(pdu.TypeICResp).Header)
	h.params = resp.Params(f)
	h.reader.Receiver = pdu.NewReceiver(pdu.Host, h.params, pdu.Limits{})
	h.cmd = h.params.Layout(pdu.TypeCapsuleCmd)
	d, err := nvme.NewConnectData(hostID, nvme.ControllerIDDynamic, nqn, hostNQN)
	must(t, err)
	raw, err := d.AppendBinary(nil)
	must(t, err)
	cmd := nvme.ConnectCommand{SQSize: 31}.Command()
	cmd.SetSGL(nvme.SGLInCapsule(0, uint32(len(raw))))
	slow(h.capsule(&cmd, raw))
	h.ok(h.completion())
	cmd = nvme.NewPropertyGet(nvme.RegVS).Command()
	slow(h.capsule(&cmd, nil))
	if v := h.ok(h.completion()).Result; nvme.VS(v) != nvme.Version21 {
		t.Errorf("version %v", nvme.VS(v))
	}
}

// TestPipelined sends everything up to the Connect command at once.
func TestPipelined(t *testing.T) {
	h := newLab(t, oneNamespace(backend.NewHeap(1<<20))).dial()
	f := pdu.ICReqFields{}
	h.params = pdu.Params{MaxH2CData: 1 << 20}
	h.cmd = h.params.Layout(pdu.TypeCapsuleCmd)
	d, err := nvme.NewConnectData(hostID, nvme.ControllerIDDynamic, nqn, hostNQN)
	must(t, err)
	raw, err := d.AppendBinary(nil)
	must(t, err)
	cmd := nvme.ConnectCommand{SQSize: 31}.Command()
	cmd.SetSGL(nvme.SGLInCapsule(0, uint32(len(raw))))
	h.send(append(pdu.AppendICReq(nil, f), h.capsule(&cmd, raw)...))
	h.nextOf(pdu.TypeICResp)
	h.reader.Receiver = pdu.NewReceiver(pdu.Host, h.params, pdu.Limits{})
	h.ok(h.completion())
}

func TestHandshakeTimeout(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Limits.HandshakeTime = 5 * time.Second
	l := newLab(t, cfg)
	silent, half := l.dial(), l.dial()
	half.initialise(pdu.ICReqFields{})
	queue := l.admin(connectOptions{})
	l.advance(6 * time.Second)
	silent.closed()
	half.closed()
	queue.property(nvme.RegVS)
}

func TestLimits(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Limits.Handshakes = 2
	cfg.Limits.Connections = 3
	l := newLab(t, cfg)
	a, b := l.dial(), l.dial()
	a.initialise(pdu.ICReqFields{})
	b.initialise(pdu.ICReqFields{})
	c := l.dial()
	c.closed()
	a.ok(a.connect(connectOptions{})) // is no handshake any more
	d := l.dial()
	d.initialise(pdu.ICReqFields{})
	d.ok(d.connect(connectOptions{}))
	b.ok(b.connect(connectOptions{}))
	e := l.dial()
	e.closed()
	a.close()
	l.await("a connection is gone", func() bool { all, _ := l.target.Connections(); return all == 2 })
	f := l.dial()
	f.initialise(pdu.ICReqFields{})
}
