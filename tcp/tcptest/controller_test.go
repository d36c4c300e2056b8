package tcptest_test

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

func disk(blocks uint64) (*tcptest.Controller, *tcptest.Namespace) {
	k, ns := new(tcptest.Controller), tcptest.NewNamespace(blocks, 512)
	k.AddNamespace(1, ns)
	return k, ns
}

// Connect commands that are right, and wrong in each field.
func TestControllerConnect(t *testing.T) {
	type change = func(c *nvme.ConnectCommand, d *nvme.ConnectData)
	none := func(*nvme.ConnectCommand, *nvme.ConnectData) {}
	nqn := func(field *[256]byte, s string) {
		*field = [256]byte{}
		copy(field[:], s)
	}
	tests := []struct {
		name   string
		qid    uint16
		change change
		st     nvme.Status
		param  nvme.InvalidParameter
	}{
		{"admin", 0, none, 0, nvme.InvalidParameter{}},
		{"I/O", 1, none, 0, nvme.InvalidParameter{}},
		{"last I/O", 16, none, 0, nvme.InvalidParameter{}},
		{"I/O beyond those granted", 17, none, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 42}},
		{"size 0", 0, func(c *nvme.ConnectCommand, _ *nvme.ConnectData) { c.SQSize = 0 }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 44}},
		{"size above MQES", 1, func(c *nvme.ConnectCommand, _ *nvme.ConnectData) { c.SQSize = 1024 }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 44}},
		{"other subsystem", 0, func(_ *nvme.ConnectCommand, d *nvme.ConnectData) { nqn(&d.SubNQN, "nqn.2014-08.org.example:x") }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 256, InData: true}},
		{"no subsystem", 0, func(_ *nvme.ConnectCommand, d *nvme.ConnectData) { nqn(&d.SubNQN, "") }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 256, InData: true}},
		{"no host", 0, func(_ *nvme.ConnectCommand, d *nvme.ConnectData) { nqn(&d.HostNQN, "") }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 512, InData: true}},
		{"other host", 0, func(_ *nvme.ConnectCommand, d *nvme.ConnectData) { nqn(&d.HostNQN, "nqn.2014-08.org.example:x") }, nvme.StatusConnectInvalidHost, nvme.InvalidParameter{}},
		{"static controller", 0, func(_ *nvme.ConnectCommand, d *nvme.ConnectData) { d.ControllerID = 1 }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 16, InData: true}},
		{"other controller", 1, func(_ *nvme.ConnectCommand, d *nvme.ConnectData) { d.ControllerID = 2 }, nvme.StatusConnectInvalidParameters, nvme.InvalidParameter{Offset: 16, InData: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, _ := disk(64)
			k.SubNQN, k.HostNQN = subNQN, hostNQN
			s := start(t, k.Serve, nil)
			if tt.qid != 0 {
				admin(t, s)
			}
			h := dial(t, s).handshake(pdu.ICReqFields{})
			cpl := h.connect(tt.qid, tt.change)
			wantStatus(t, "Connect", cpl.Status(), tt.st)
			if tt.st == nvme.StatusConnectInvalidParameters && nvme.ParseInvalidParameter(cpl.Result) != tt.param {
				t.Errorf("parameter %+v, want %+v", nvme.ParseInvalidParameter(cpl.Result), tt.param)
			}
			if tt.st == 0 && (cpl.SQHead != nvme.SQHeadNoFlowControl || nvme.ParseConnectResponse(cpl.Result).ControllerID != 1) {
				t.Errorf("response %+v", cpl)
			}
		})
	}
}

// What has to be done first, and twice the same.
func TestControllerSequence(t *testing.T) {
	k, _ := disk(64)
	s := start(t, k.Serve, nil)
	h := dial(t, s).handshake(pdu.ICReqFields{})
	wantStatus(t, "before Connect", h.do(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil).Status(), nvme.StatusCommandSequenceError)
	wantStatus(t, "property before Connect", h.do(nvme.NewPropertyGet(nvme.RegCAP).Command(), nil).Status(), nvme.StatusCommandSequenceError)
	wantStatus(t, "I/O queue before the admin queue", h.connect(1).Status(), nvme.StatusConnectInvalidParameters)
	wantStatus(t, "Connect", h.connect(0).Status(), 0)
	wantStatus(t, "second Connect", h.connect(0).Status(), nvme.StatusInvalidOpcode)
	wantStatus(t, "I/O queue before enabling", dial(t, s).handshake(pdu.ICReqFields{}).connect(1).Status(), nvme.StatusConnectInvalidParameters)
	h.enable()
	q := ioQueue(t, s, pdu.ICReqFields{})
	wantStatus(t, "the same queue again", dial(t, s).handshake(pdu.ICReqFields{}).connect(1).Status(), nvme.StatusConnectInvalidParameters)
	wantStatus(t, "property on an I/O queue", q.do(nvme.NewPropertyGet(nvme.RegCAP).Command(), nil).Status(), nvme.StatusInvalidOpcode)
	wantStatus(t, "unknown admin command", h.do(nvme.Command{Opcode: 0xff}, nil).Status(), nvme.StatusInvalidOpcode)
	wantStatus(t, "unknown I/O command", q.do(nvme.Command{Opcode: 0xff, NSID: 1}, nil).Status(), nvme.StatusInvalidOpcode)
	wantStatus(t, "unknown namespace", q.do(nvme.Command{Opcode: nvme.OpFlush, NSID: 2}, nil).Status(), nvme.StatusInvalidNamespace)
	wantStatus(t, "keep alive", h.do(nvme.Command{Opcode: nvme.AdminKeepAlive}, nil).Status(), 0)
	wantStatus(t, "disconnect", q.do(nvme.DisconnectCommand(), nil).Status(), 0)
	if _, err := q.rd.Next(); err != io.EOF {
		t.Errorf("after Disconnect: %v, want EOF", err)
	}
	q.nc.Close()
	if d := k.KeepAliveTimeout(); d != 5*time.Second {
		t.Errorf("keep alive timeout %v", d)
	}
	h.nc.Close()
	wantErr(t, s.Close())
}

func TestControllerProperties(t *testing.T) {
	k := &tcptest.Controller{
		CAP: nvme.CAPFields{MQES: 7, TO: 3 * time.Second}.CAP(), VS: nvme.Version14,
		CSTS: func(cc nvme.CC, n int) nvme.CSTS { return nvme.CSTSFields{RDY: cc.EN() && n > 1}.CSTS() },
	}
	h := dial(t, start(t, k.Serve, nil)).handshake(pdu.ICReqFields{})
	h.connect(0)
	get := func(offset uint32, want uint64) {
		t.Helper()
		if cpl := h.do(nvme.NewPropertyGet(offset).Command(), nil); !cpl.Status().OK() || cpl.Result != want {
			t.Errorf("property %#x is %#x, %v; want %#x", offset, cpl.Result, cpl.Status(), want)
		}
	}
	get(nvme.RegCAP, uint64(k.CAP))
	get(nvme.RegVS, uint64(nvme.Version14))
	get(nvme.RegCC, 0)
	get(nvme.RegNSSR, 0)
	get(nvme.RegCRTO, 6)
	get(nvme.RegCSTS, 0)
	h.enable()
	get(nvme.RegCSTS, 0)
	get(nvme.RegCSTS, 0)
	get(nvme.RegCSTS, 1)
	if !k.Configuration().EN() {
		t.Error("CC.EN is clear")
	}
	for name, cmd := range map[string]nvme.Command{
		"offset":    nvme.PropertyGetCommand{Offset: 4, Size: 4}.Command(),
		"size":      nvme.PropertyGetCommand{Offset: nvme.RegCAP, Size: 4}.Command(),
		"read only": nvme.NewPropertySet(nvme.RegVS, 1).Command(),
		"CC size":   nvme.PropertySetCommand{Offset: nvme.RegCC, Size: 8}.Command(),
	} {
		wantStatus(t, name, h.do(cmd, nil).Status(), nvme.StatusInvalidField)
	}
	k2 := new(tcptest.Controller)
	h = admin(t, start(t, k2.Serve, nil))
	get(nvme.RegCSTS, 1)
	h.do(nvme.NewPropertySet(nvme.RegCC, uint64(k2.Configuration().WithSHN(nvme.CCSHNNormal))).Command(), nil)
	get(nvme.RegCSTS, uint64(nvme.CSTSFields{RDY: true, SHST: nvme.CSTSSHSTComplete}.CSTS()))
}

func TestControllerIdentify(t *testing.T) {
	k, _ := disk(100)
	other := tcptest.NewNamespace(8, 4096)
	other.SetIDs(nvme.NamespaceIdentity{UUID: [16]byte{5}})
	other.Adapt(func(id *nvme.IdentifyNamespace) { id.NOIOB = 4 })
	k.AddNamespace(70_000, other)
	k.ID, k.InCapsule = 0, 8192
	k.Identify = func(id *nvme.IdentifyController) { id.MDTS = 5 }
	h := admin(t, start(t, k.Serve, nil))
	identify := func(cns nvme.CNS, nsid uint32) ([]byte, nvme.Status) {
		t.Helper()
		b, _, st := h.read(nvme.Command{Opcode: nvme.AdminIdentify, NSID: nsid, CDW10: uint32(cns)}, nvme.IdentifyDataSize)
		return b, st
	}
	b, st := identify(nvme.CNSController, 0)
	var id nvme.IdentifyController
	if err := id.UnmarshalBinary(b); err != nil || !st.OK() {
		t.Fatal(err, st)
	}
	if nqn, _ := id.SubsystemNQN(); nqn != subNQN || id.MDTS != 5 || id.NN != 70_000 || id.CapsuleDataSize() != 8192 || id.CNTLID != 1 {
		t.Errorf("%q, MDTS %d, NN %d, capsule %d, CNTLID %d", nqn, id.MDTS, id.NN, id.CapsuleDataSize(), id.CNTLID)
	}
	b, _ = identify(nvme.CNSNamespace, 70_000)
	var ns nvme.IdentifyNamespace
	if err := ns.UnmarshalBinary(b); err != nil || ns.NSZE != 8 || ns.LBAF[0].LBADS != 12 || ns.NOIOB != 4 {
		t.Errorf("%+v, %v", ns, err)
	}
	b, _ = identify(nvme.CNSNamespaceDescriptors, 70_000)
	if ids, err := nvme.ParseNamespaceDescriptors(b); err != nil || ids.UUID != [16]byte{5} {
		t.Errorf("%+v, %v", ids, err)
	}
	b, _ = identify(nvme.CNSActiveNamespaces, 0)
	if binary.LittleEndian.Uint32(b) != 1 || binary.LittleEndian.Uint32(b[4:]) != 70_000 || binary.LittleEndian.Uint32(b[8:]) != 0 {
		t.Errorf("active % x", b[:16])
	}
	k.RemoveNamespace(1)
	b, _ = identify(nvme.CNSNamespace, 1)
	equal(t, "inactive namespace", b, make([]byte, 4096))
	_, st = identify(nvme.CNSNamespaceDescriptors, 1)
	wantStatus(t, "descriptors of an inactive namespace", st, nvme.StatusInvalidNamespace)
	_, st = identify(nvme.CNSPorts, 0)
	wantStatus(t, "unknown CNS", st, nvme.StatusInvalidField)
}

func TestControllerFeatures(t *testing.T) {
	k := &tcptest.Controller{Queues: 3}
	h := admin(t, start(t, k.Serve, nil))
	set := func(id nvme.FeatureID, v uint32) *nvme.Completion {
		return h.do(nvme.Command{Opcode: nvme.AdminSetFeatures, CDW10: uint32(id), CDW11: v}, nil)
	}
	get := func(id nvme.FeatureID) *nvme.Completion {
		return h.do(nvme.Command{Opcode: nvme.AdminGetFeatures, CDW10: uint32(id)}, nil)
	}
	if cpl := set(nvme.FeatNumberOfQueues, 0x00070001); cpl.Result != 0x00020001 {
		t.Errorf("queues %#x", cpl.Result)
	}
	if cpl := get(nvme.FeatNumberOfQueues); cpl.Result != 0x00020002 {
		t.Errorf("queues %#x", cpl.Result)
	}
	if cpl := get(nvme.FeatKeepAliveTimer); cpl.Result != 5000 {
		t.Errorf("keep alive %d", cpl.Result)
	}
	wantStatus(t, "unknown feature", get(nvme.FeatArbitration).Status(), nvme.StatusInvalidField)
	set(nvme.FeatArbitration, 77)
	if cpl := get(nvme.FeatArbitration); cpl.Result != 77 {
		t.Errorf("feature %d", cpl.Result)
	}
	if v, ok := k.Feature(nvme.FeatArbitration); v != 77 || !ok {
		t.Errorf("feature %d, %v", v, ok)
	}
	if cpl := h.do(nvme.Command{Opcode: nvme.AdminAbort}, nil); cpl.Result != 1 || !cpl.Status().OK() {
		t.Errorf("abort %+v", cpl)
	}
}

func TestControllerEvents(t *testing.T) {
	k := new(tcptest.Controller)
	h := admin(t, start(t, k.Serve, nil))
	var cids []uint16
	for range 4 {
		cids = append(cids, h.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil))
	}
	wantStatus(t, "one too many", h.do(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil).Status(), nvme.StatusAsyncEventLimitExceeded)
	if n := k.EventsArmed(); n != 4 {
		t.Errorf("%d requests", n)
	}
	k.NamespaceChanged(5)
	k.NamespaceChanged(3) // reported already
	want := nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeNamespaceAttributeChanged, nvme.LogChangedNamespaces, 0)
	if cpl := h.response(cids[0]); nvme.AsyncEvent(cpl.Result) != want {
		t.Errorf("event %v", nvme.AsyncEvent(cpl.Result))
	}
	log := func(lid nvme.LogID, rae bool) []byte {
		cmd := nvme.Command{Opcode: nvme.AdminGetLogPage, CDW10: uint32(lid) | 15<<16}
		if rae {
			cmd.CDW10 |= 1 << 15
		}
		b, _, st := h.read(cmd, 64)
		wantStatus(t, "log page", st, 0)
		return b
	}
	list := make([]byte, 64)
	list[0], list[4] = 3, 5
	equal(t, "changed namespaces", log(nvme.LogChangedNamespaces, true), list)
	equal(t, "changed namespaces again", log(nvme.LogChangedNamespaces, false), list)
	equal(t, "changed namespaces when read", log(nvme.LogChangedNamespaces, false), make([]byte, 64))
	equal(t, "error log", log(nvme.LogError, false), make([]byte, 64))
	_, _, st := h.read(nvme.Command{Opcode: nvme.AdminGetLogPage, CDW10: 0xc5}, 64)
	wantStatus(t, "unknown log page", st, nvme.StatusInvalidLogPage)
	for i := range 5 { // more than there are requests
		k.Event(nvme.AsyncEvent(i))
	}
	for i, cid := range cids[1:] {
		if cpl := h.response(cid); cpl.Result != uint64(i) {
			t.Errorf("event %d, want %d", cpl.Result, i)
		}
	}
	if cpl := h.do(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil); cpl.Result != 3 {
		t.Errorf("the event that waited is %d", cpl.Result)
	}
}

// An override answers, late or not at all, or leaves it to the controller.
func TestControllerOverride(t *testing.T) {
	k, _ := disk(64)
	late := make(chan *tcptest.Request, 1)
	k.Override = func(r *tcptest.Request) bool {
		switch r.Cmd.Opcode {
		case nvme.OpFlush:
			r.Complete(nvme.StatusWriteFault, 0)
		case nvme.OpWriteZeroes:
			late <- r
		case nvme.OpVerify:
			k.Answer(r)
		default:
			return false
		}
		return true
	}
	s := start(t, k.Serve, nil)
	h0 := admin(t, s)
	h := ioQueue(t, s, pdu.ICReqFields{})
	wantStatus(t, "overridden", h.do(nvme.Command{Opcode: nvme.OpFlush, NSID: 1}, nil).Status(), nvme.StatusWriteFault)
	cid := h.post(nvme.Command{Opcode: nvme.OpWriteZeroes, NSID: 1}, nil)
	wantStatus(t, "left to the controller", h.do(nvme.Command{Opcode: nvme.OpVerify, NSID: 1}, nil).Status(), 0)
	r := <-late
	if r.Queue != 1 {
		t.Errorf("queue %d", r.Queue)
	}
	r.Complete(nvme.StatusAbortRequested, 0)
	wantStatus(t, "late", h.response(cid).Status(), nvme.StatusAbortRequested)
	h.nc.Close()
	h0.nc.Close()
	wantErr(t, s.Close())
	r.Complete(nvme.StatusSuccess, 0) // too late, and no failure
}

// A host that does not keep to the protocol is told, and fails the script.
func TestControllerBadHost(t *testing.T) {
	tests := map[string]struct {
		bad   func(h *host)
		fes   pdu.FES
		words string
	}{
		"unknown PDU": {func(h *host) { h.send([]byte{0x42, 0, 24, 0, 24, 0, 0, 0}) }, pdu.FESInvalidHeaderField, "PDU-Type"},
		"data that was not asked for": {func(h *host) {
			l := h.params.Layout(pdu.TypeH2CData)
			h.send(pdu.AppendH2CData(nil, &l, pdu.LastPDU, pdu.H2CDataFields{}, make([]byte, 512)))
		}, 0, "no R2T"},
		"too much in the capsule": {func(h *host) { h.post(nvme.Command{Opcode: nvme.OpWrite, NSID: 1, CDW12: 15}, make([]byte, 8192)) }, pdu.FESDataLimitExceeded, "in-capsule"},
		"SGL and capsule differ": {func(h *host) {
			cmd := nvme.Command{Opcode: nvme.OpWrite, NSID: 1}
			cmd.SetSGL(nvme.SGLInCapsule(0, 512))
			l := h.params.Layout(pdu.TypeCapsuleCmd)
			h.send(pdu.AppendCapsuleCmd(nil, &l, &cmd, make([]byte, 1024)))
		}, pdu.FESInvalidHeaderField, "SGL1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k, _ := disk(64)
			s := start(t, k.Serve, nil)
			admin(t, s)
			h := ioQueue(t, s, pdu.ICReqFields{})
			tt.bad(h)
			if tt.fes != 0 {
				p := h.next()
				if e := (*pdu.TermReq)(p.Header).Err(p.Data); p.Type() != pdu.TypeC2HTermReq || e.FES != tt.fes {
					t.Errorf("terminated with %v", e)
				}
			}
			if _, err := h.rd.Next(); err != io.EOF {
				t.Errorf("%v, want EOF", err)
			}
			h.nc.Close()
			for s.Err() == nil {
				time.Sleep(100 * time.Microsecond)
			}
			wantErr(t, s.Close(), tt.words)
		})
	}
}

// H2CTermReqs are taken by the test, or are an error of it.
func TestAwaitTermReq(t *testing.T) {
	k, _ := disk(64)
	s := start(t, k.Serve, nil)
	for i := range 2 {
		h := dial(t, s).handshake(pdu.ICReqFields{})
		h.send(pdu.AppendTermReq(nil, pdu.Host, pdu.TermReqFields{FES: pdu.FESDataOutOfRange}, make([]byte, i)))
		h.nc.Close()
		if i == 0 {
			if e := k.AwaitTermReq(t); e.FES != pdu.FESDataOutOfRange || e.From != pdu.Host {
				t.Errorf("%+v", e)
			}
			wantErr(t, k.Check())
		}
	}
	for k.Check() == nil {
		time.Sleep(100 * time.Microsecond)
	}
	wantErr(t, k.Check(), "Data Transfer Out of Range")
	k.AwaitTermReq(t)
	wantErr(t, k.Check())
	wantErr(t, s.Close())
}
