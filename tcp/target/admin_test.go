package target_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

func TestProperties(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Subsystems[0].QueueEntries = 128
	l := newLab(t, cfg)
	h := l.dial()
	h.initialise(pdu.ICReqFields{})
	h.ok(h.connect(connectOptions{}))
	c := nvme.CAP(h.property(nvme.RegCAP))
	if c.MQES() != 127 || !c.CQR() || c.TO() != 500*time.Millisecond || c.CSS() != nvme.CAPCSSNVM|nvme.CAPCSSIOCS || c.MPSMIN() != 0 {
		t.Errorf("CAP %+v", c.Fields())
	}
	if vs := nvme.VS(h.property(nvme.RegVS)); vs != nvme.Version21 {
		t.Errorf("VS %v", vs)
	}
	if cc, st := h.property(nvme.RegCC), h.property(nvme.RegCSTS); cc != 0 || st != 0 {
		t.Errorf("CC %#x, CSTS %#x", cc, st)
	}
	if v := nvme.CRTO(h.property(nvme.RegCRTO)); v.CRWMT() != 500*time.Millisecond {
		t.Errorf("CRTO %#x", v)
	}
	h.property(nvme.RegNSSR)
	const bad = nvme.StatusInvalidField | dnr
	for _, p := range []nvme.PropertyGetCommand{
		{Offset: nvme.RegCAP, Size: 4}, {Offset: nvme.RegVS, Size: 8}, {Offset: 0x1000, Size: 4}, {Offset: nvme.RegAQA, Size: 4},
	} {
		h.is(h.do(p.Command(), nil), bad)
	}
	for _, p := range []nvme.PropertySetCommand{
		{Offset: nvme.RegCC, Size: 8}, {Offset: nvme.RegVS, Size: 4}, {Offset: nvme.RegCSTS, Size: 4},
	} {
		h.is(h.do(p.Command(), nil), bad)
	}
	reserved := nvme.NewPropertyGet(nvme.RegVS).Command()
	reserved.CDW10 = 5
	h.is(h.do(reserved, nil), bad)
}

func TestEnable(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	h := l.dial()
	h.initialise(pdu.ICReqFields{})
	h.ok(h.connect(connectOptions{}))
	for _, c := range []struct {
		name string
		f    nvme.CCFields
		ok   bool
	}{
		{"NVM", nvme.CCFields{IOSQES: 6, IOCQES: 4}, true},
		{"all command sets", nvme.CCFields{IOSQES: 6, IOCQES: 4, CSS: nvme.CCCSSAll}, true},
		{"admin only", nvme.CCFields{IOSQES: 6, IOCQES: 4, CSS: nvme.CCCSSAdmin}, false},
		{"submission queue entry size", nvme.CCFields{IOSQES: 5, IOCQES: 4}, false},
		{"completion queue entry size", nvme.CCFields{IOSQES: 6}, false},
		{"page size", nvme.CCFields{IOSQES: 6, IOCQES: 4, MPS: 1}, false},
		{"arbitration", nvme.CCFields{IOSQES: 6, IOCQES: 4, AMS: 1}, false},
	} {
		c.f.EN = true
		h.setCC(c.f.CC())
		st := nvme.CSTS(h.property(nvme.RegCSTS))
		if st.RDY() != c.ok || st.CFS() == c.ok {
			t.Errorf("%s: %v", c.name, st)
		}
		h.setCC(0)
		if st := h.property(nvme.RegCSTS); st != 0 {
			t.Errorf("%s: CSTS %#x after it was disabled", c.name, st)
		}
	}
}

// TestReset disables a controller, which deletes its I/O queues.
func TestReset(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	aer := admin.post(nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil, 0)
	cmd := nvme.NewPropertySet(nvme.RegCC, 0).Command()
	reset := admin.post(cmd, nil, 0)
	if cpl := admin.completion(); cpl.CID != aer || cpl.Status() != nvme.StatusAbortRequested {
		t.Errorf("%+v, want the event request aborted", cpl)
	}
	if cpl := admin.ok(admin.completion()); cpl.CID != reset {
		t.Errorf("%+v", cpl)
	}
	q.closed()
	admin.setCC(enabled)
	q = admin.queue(connectOptions{}, pdu.ICReqFields{})
	_, cpl := q.in(read(0, 1), 512)
	q.ok(cpl)
}

// TestShutdown shuts a controller down, which makes what was written durable.
func TestShutdown(t *testing.T) {
	f, err := backend.NewFile(backend.FileConfig{Path: filepath.Join(t.TempDir(), "disk"), Size: 1 << 20})
	must(t, err)
	l := newLab(t, oneNamespace(f))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	q.ok(q.do(write(0, 1), pattern(1, 512)))
	admin.setCC(enabled.WithSHN(nvme.CCSHNNormal))
	q.closed()
	l.await("the shutdown is complete", func() bool {
		return nvme.CSTS(admin.property(nvme.RegCSTS)).SHST() == nvme.CSTSSHSTComplete
	})
	late := l.dial()
	late.initialise(pdu.ICReqFields{})
	late.is(late.connect(connectOptions{qid: 1, controller: admin.ctrl}), nvme.StatusCommandSequenceError|dnr)
	admin.setCC(0)
	admin.setCC(enabled)
	q = admin.queue(connectOptions{}, pdu.ICReqFields{})
	got, _ := q.in(read(0, 1), 512)
	same(t, "data", got, pattern(1, 512))
}

// identify executes an Identify command.
func (h *host) identify(c nvme.IdentifyCommand) ([]byte, nvme.Completion) {
	h.t.Helper()
	return h.in(c.Command(), nvme.IdentifyDataSize)
}

func TestIdentifyController(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	s := &cfg.Subsystems[0]
	s.Serial, s.Model, s.Firmware = "S1", "M1", "F1"
	s.MaxTransfer, s.QuiesceTime, s.MaxNSID, s.MaxNamespaces = 128<<10, 1500*time.Millisecond, 1<<30, 7
	s.KeepAlive = target.KeepAlive{Traffic: true, Granularity: time.Second}
	admin := newLab(t, cfg).admin(connectOptions{})
	b, cpl := admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSController})
	admin.ok(cpl)
	var id nvme.IdentifyController
	must(t, id.UnmarshalBinary(b))
	name, err := id.SubsystemNQN()
	must(t, err)
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"serial number", id.SerialNumber(), "S1"},
		{"model number", id.ModelNumber(), "M1"},
		{"firmware revision", id.FirmwareRevision(), "F1"},
		{"NQN", name, nqn},
		{"controller ID", id.CNTLID, admin.ctrl},
		{"MDTS", id.MaxTransferSize(4096), uint64(128 << 10)},
		{"CQT", id.CommandQuiesceTime(), 1500 * time.Millisecond},
		{"NN", id.NN, uint32(1 << 30)},
		{"MNAN", id.MaxNamespaces(), uint32(7)},
		{"KAS", id.KeepAliveGranularity(), time.Second},
		{"TBKAS", id.CTRATT & nvme.CTRATTTrafficKeepAlive, nvme.CTRATTTrafficKeepAlive},
		{"in-capsule data", id.CapsuleDataSize(), uint64(16 << 10)},
		{"in-capsule data offset", id.CapsuleDataOffset(), uint64(0)},
		{"version", id.VER, nvme.Version21},
		{"type", id.CNTRLTYPE, nvme.ControllerTypeIO},
		{"ANA", id.ReportsANA(), true},
		{"ANA groups", id.NANAGRPID, uint32(32)},
		{"SQES", id.SQES, uint8(0x66)},
		{"CQES", id.CQES, uint8(0x44)},
		{"fused", id.FUSES, nvme.FUSESCompareAndWrite},
		{"write cache", id.VWC, nvme.VWCFlushAll},
		{"SGL", id.SGLS, nvme.SGLSByteAligned | nvme.SGLSOffset | nvme.SGLSTransport},
		{"Disconnect", id.OFCS, nvme.OFCSDisconnect},
		{"events", id.OAES, nvme.AsyncConfigNamespaceAttribute | nvme.AsyncConfigANAChange},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestIdentifyNamespaces(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	s := &cfg.Subsystems[0]
	s.MaxNSID = 1 << 20
	s.Namespaces = []target.NamespaceConfig{
		{NSID: 5, Backend: backend.NewNull(1 << 20), BlockSize: 4096, ANAGroup: 3, Boundary: 32, WriteGranularity: 8, OptimalWrite: 64},
		{Backend: backend.NewNull(1 << 20), Private: true, ReadOnly: true, NGUID: [16]byte{1: 2}, EUI64: [8]byte{3: 4}},
		{NSID: 70000, Backend: backend.NewNull(1 << 20)},
	}
	l := newLab(t, cfg)
	admin := l.admin(connectOptions{})
	list := func(c nvme.IdentifyCommand) []uint32 {
		t.Helper()
		b, cpl := admin.identify(c)
		admin.ok(cpl)
		ids, err := nvme.ParseNamespaceList(b, c.NSID)
		must(t, err)
		return ids
	}
	if got := list(nvme.IdentifyCommand{CNS: nvme.CNSActiveNamespaces}); len(got) != 3 || got[0] != 1 || got[1] != 5 || got[2] != 70000 {
		t.Errorf("active namespaces %v", got)
	}
	if got := list(nvme.IdentifyCommand{CNS: nvme.CNSActiveNamespacesCS, NSID: 5}); len(got) != 1 || got[0] != 70000 {
		t.Errorf("active namespaces after 5: %v", got)
	}

	b, cpl := admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: 5})
	admin.ok(cpl)
	var ns nvme.IdentifyNamespace
	must(t, ns.UnmarshalBinary(b))
	if size, err := ns.Bytes(); err != nil || size != 1<<20 || ns.NSZE != 256 || ns.ANAGRPID != 3 || ns.NMIC != nvme.NMICShared ||
		ns.NOIOB != 32 || !ns.HasWriteHints() || ns.NPWG != 7 || ns.NOWS != 63 || ns.NSATTR != 0 {
		t.Errorf("namespace 5: %d bytes, %v, %+v", size, err, ns.ANAGRPID)
	}
	b, cpl = admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: 1})
	admin.ok(cpl)
	must(t, ns.UnmarshalBinary(b))
	if ns.NMIC != 0 || ns.NSATTR != nvme.NSATTRWriteProtected || ns.NGUID != [16]byte{1: 2} || ns.EUI64 != [8]byte{3: 4} {
		t.Error("namespace 1 is not what was configured")
	}
	b, cpl = admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSNamespaceDescriptors, NSID: 1})
	admin.ok(cpl)
	id, err := nvme.ParseNamespaceDescriptors(b)
	must(t, err)
	if id.NGUID != [16]byte{1: 2} || id.EUI64 != [8]byte{3: 4} || !id.HasCSI || id.UUID != [16]byte{} {
		t.Errorf("identity %v", id)
	}
	b, cpl = admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSNamespaceDescriptors, NSID: 5})
	admin.ok(cpl)
	if id, err = nvme.ParseNamespaceDescriptors(b); err != nil || id.UUID != l.subsystem().Namespace(5).UUID() || id.UUID == [16]byte{} {
		t.Errorf("identity %v, %v", id, err)
	}
	b, cpl = admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSNamespaceIndependent, NSID: 5})
	admin.ok(cpl)
	var ind nvme.IdentifyNamespaceIndependent
	must(t, ind.UnmarshalBinary(b))
	if !ind.Ready() || ind.ANAGRPID != 3 || ind.NMIC != nvme.NMICShared {
		t.Errorf("independent: %+v", ind.NSTAT)
	}
}

func TestIdentifyOthers(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewNull(1<<20)))
	admin := l.admin(connectOptions{})
	l.admin(connectOptions{})
	b, cpl := admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSControllers})
	admin.ok(cpl)
	if ids, err := nvme.ParseIdentifierList(b); err != nil || len(ids) != 2 || ids[0] != 1 || ids[1] != 2 {
		t.Errorf("controllers %v, %v", ids, err)
	}
	b, cpl = admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSIOCommandSets})
	admin.ok(cpl)
	if sets, err := nvme.ParseIOCommandSets(b); err != nil || len(sets) != 1 || !sets[0].Has(nvme.CSINVM) {
		t.Errorf("command sets %v, %v", sets, err)
	}
	zeros := make([]byte, nvme.IdentifyDataSize)
	for _, c := range []struct {
		name string
		cmd  nvme.IdentifyCommand
		want nvme.Status
	}{
		{"inactive namespace", nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: 9}, 0},
		{"inactive namespace by command set", nvme.IdentifyCommand{CNS: nvme.CNSNamespaceCS, NSID: 9}, 0},
		{"all namespaces", nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: nvme.NSIDAll}, 0},
		{"namespace by command set", nvme.IdentifyCommand{CNS: nvme.CNSNamespaceCS, NSID: 1}, 0},
		{"no namespace", nvme.IdentifyCommand{CNS: nvme.CNSNamespace}, nvme.StatusInvalidNamespace | dnr},
		{"beyond NN", nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: 1025}, nvme.StatusInvalidNamespace | dnr},
		{"descriptors of an inactive namespace", nvme.IdentifyCommand{CNS: nvme.CNSNamespaceDescriptors, NSID: 9}, nvme.StatusInvalidField | dnr},
		{"list after the last", nvme.IdentifyCommand{CNS: nvme.CNSActiveNamespaces, NSID: nvme.NSIDAll - 1}, nvme.StatusInvalidNamespace | dnr},
		{"another command set", nvme.IdentifyCommand{CNS: nvme.CNSControllerCS, CSI: nvme.CSIZoned}, nvme.StatusInvalidIOCommandSet | dnr},
		{"another command set's namespace", nvme.IdentifyCommand{CNS: nvme.CNSNamespaceCS, NSID: 1, CSI: nvme.CSIZoned}, nvme.StatusInvalidIOCommandSet | dnr},
		{"NVM sets", nvme.IdentifyCommand{CNS: nvme.CNSNVMSets}, nvme.StatusInvalidField | dnr},
		{"reserved", nvme.IdentifyCommand{CNS: 0x77}, nvme.StatusInvalidField | dnr},
	} {
		b, cpl := admin.identify(c.cmd)
		if got := cpl.Status(); got != c.want {
			t.Errorf("%s: status %v, want %v", c.name, got, c.want)
		}
		if c.want == 0 && !bytes.Equal(b, zeros) {
			t.Errorf("%s: not all zeros", c.name)
		}
	}
	_, cpl = admin.identify(nvme.IdentifyCommand{CNS: nvme.CNSControllerCS})
	admin.ok(cpl)
	_, cpl = admin.in(nvme.IdentifyCommand{CNS: nvme.CNSController}.Command(), 512)
	admin.is(cpl, nvme.StatusDataSGLLengthInvalid|dnr)
	admin.is(admin.do(nvme.Command{Opcode: nvme.AdminFormatNVM}, nil), nvme.StatusInvalidOpcode|dnr)
	fused := nvme.IdentifyCommand{CNS: nvme.CNSController}.Command()
	fused.Flags = nvme.FlagFuseFirst | nvme.FlagSGL
	admin.send(admin.capsule(&fused, nil))
	admin.is(admin.completion(), nvme.StatusInvalidField|dnr)
}

func getFeature(id nvme.FeatureID, sel uint8) nvme.Command {
	return nvme.GetFeaturesCommand{FeatureID: id, Select: sel}.Command()
}

func setFeature(id nvme.FeatureID, v uint32) nvme.Command {
	return nvme.SetFeaturesCommand{FeatureID: id, Value: v}.Command()
}

func TestFeatures(t *testing.T) {
	cfg := oneNamespace(backend.NewNull(1 << 20))
	cfg.Subsystems[0].IOQueues = 6
	l := newLab(t, cfg)
	h := l.admin(connectOptions{kato: 1234 * time.Millisecond})
	value := func(id nvme.FeatureID, sel uint8) uint32 {
		t.Helper()
		return uint32(h.ok(h.do(getFeature(id, sel), nil)).Result)
	}
	if v := nvme.NumberOfQueues(value(nvme.FeatNumberOfQueues, 0)); v.SQ() != 6 || v.CQ() != 6 {
		t.Errorf("queues %#x", v)
	}
	n := uint32(nvme.MakeNumberOfQueues(3, 3))
	if v := nvme.NumberOfQueues(h.ok(h.do(setFeature(nvme.FeatNumberOfQueues, n), nil)).Result); v.SQ() != 6 {
		t.Errorf("granted %#x", v)
	}
	h.is(h.do(setFeature(nvme.FeatNumberOfQueues, 0xffff), nil), nvme.StatusInvalidField|dnr)
	if v := value(nvme.FeatKeepAliveTimer, 0); v != 1300 {
		t.Errorf("keep alive timeout %d ms", v)
	}
	h.ok(h.do(setFeature(nvme.FeatKeepAliveTimer, 60000), nil))
	if v := value(nvme.FeatKeepAliveTimer, 0); v != 60000 {
		t.Errorf("keep alive timeout %d ms", v)
	}
	if v, d := value(nvme.FeatVolatileWriteCache, 0), value(nvme.FeatVolatileWriteCache, 1); v != 1 || d != 1 {
		t.Errorf("write cache %d, %d", v, d)
	}
	h.ok(h.do(setFeature(nvme.FeatVolatileWriteCache, 0), nil))
	if v, d := value(nvme.FeatVolatileWriteCache, 0), value(nvme.FeatVolatileWriteCache, 1); v != 0 || d != 1 {
		t.Errorf("write cache %d, default %d", v, d)
	}
	if c := value(nvme.FeatVolatileWriteCache, nvme.SelectCapabilities); c != nvme.FeatureCapabilityChangeable {
		t.Errorf("capabilities %#x", c)
	}
	value(nvme.FeatIOCommandSetProfile, 0)
	h.is(h.do(setFeature(nvme.FeatIOCommandSetProfile, 1), nil), nvme.StatusIOCommandSetCombination|dnr)
	h.is(h.do(getFeature(0x7a, 0), nil), nvme.StatusInvalidField|dnr)
	h.is(h.do(getFeature(nvme.FeatArbitration, 4), nil), nvme.StatusInvalidField|dnr)
	save := nvme.SetFeaturesCommand{FeatureID: nvme.FeatArbitration, Save: true}.Command()
	h.is(h.do(save, nil), nvme.StatusFeatureNotSaveable|dnr)
	h.is(h.do(setFeature(nvme.FeatHostIdentifier, 1), nil), nvme.StatusCommandSequenceError|dnr)

	// Features with data.
	cmd := getFeature(nvme.FeatHostIdentifier, 0)
	_, cpl := h.in(cmd, 8)
	h.is(cpl, nvme.StatusInvalidField|dnr)
	cmd.CDW11 = 1
	b, cpl := h.in(cmd, 16)
	h.ok(cpl)
	same(t, "host identifier", b, hostID[:])

	stamp := nvme.MakeTimestamp(time.UnixMilli(1e12))
	h.ok(h.do(setFeature(nvme.FeatTimestamp, 0), stamp[:]))
	l.advance(5 * time.Second)
	b, cpl = h.in(getFeature(nvme.FeatTimestamp, 0), 8)
	h.ok(cpl)
	if got := nvme.Timestamp(b); got.Milliseconds() < 1e12+5000 || got.Milliseconds() > 1e12+6000 || !got.FromHost() {
		t.Errorf("timestamp %v, %v", got.Milliseconds(), got.FromHost())
	}

	behaviour := nvme.HostBehavior{ACRE: 1, LBAFEE: 1}
	raw, err := behaviour.AppendBinary(nil)
	must(t, err)
	h.ok(h.out(setFeature(nvme.FeatHostBehavior, 0), raw))
	b, cpl = h.in(getFeature(nvme.FeatHostBehavior, 0), 512)
	h.ok(cpl)
	same(t, "host behaviour", b, raw)
	h.setCC(0)
	h.setCC(enabled)
	b, cpl = h.in(getFeature(nvme.FeatHostBehavior, 0), 512)
	h.ok(cpl)
	same(t, "host behaviour after a reset", b, make([]byte, 512))
}

// log reads n bytes of a log page.
func (h *host) log(c nvme.GetLogPageCommand) ([]byte, nvme.Completion) {
	h.t.Helper()
	cmd, err := c.Command()
	must(h.t, err)
	return h.in(cmd, int(c.Length))
}

func TestLogs(t *testing.T) {
	l := newLab(t, oneNamespace(backend.NewHeap(1<<20)))
	admin, q := l.io(connectOptions{}, pdu.ICReqFields{})
	for range 1000 {
		_, cpl := q.in(read(0, 8), 4096)
		q.ok(cpl)
	}
	page := func(id nvme.LogID, n uint64) []byte {
		t.Helper()
		b, cpl := admin.log(nvme.GetLogPageCommand{LID: id, NSID: nvme.NSIDAll, Length: n})
		admin.ok(cpl)
		return b
	}
	var pages nvme.SupportedLogPages
	must(t, pages.UnmarshalBinary(page(nvme.LogSupportedPages, 1024)))
	for id, p := range pages.Pages {
		_, cpl := admin.log(nvme.GetLogPageCommand{LID: nvme.LogID(id), Length: 64})
		if known := cpl.Status().OK(); known != p.Supported() {
			t.Errorf("log page %v: supported %v, status %v", nvme.LogID(id), p.Supported(), cpl.Status())
		}
	}
	l.advance(2 * time.Millisecond) // for the figures to be published
	var smart nvme.SMARTLog
	must(t, smart.UnmarshalBinary(page(nvme.LogSMART, 512)))
	if smart.HostReads.Lo != 1000 || smart.DataUnitsRead.Lo != 8 || smart.CriticalWarning != 0 {
		t.Errorf("%d reads, %d units", smart.HostReads.Lo, smart.DataUnitsRead.Lo)
	}
	var effects nvme.CommandEffectsLog
	must(t, effects.UnmarshalBinary(page(nvme.LogCommandEffects, 4096)))
	if !effects.IO[nvme.OpRead].Supported() || !effects.Admin[nvme.AdminIdentify].Supported() || effects.Admin[nvme.AdminFormatNVM].Supported() {
		t.Error("command effects")
	}
	var slots nvme.FirmwareSlotLog
	must(t, slots.UnmarshalBinary(page(nvme.LogFirmwareSlot, 512)))
	if slots.Revision(1) != "1" {
		t.Errorf("firmware %q", slots.Revision(1))
	}
	admin.is(admin.do(nvme.Command{Opcode: 0x7e}, nil), nvme.StatusInvalidOpcode|dnr)
	errs, err := nvme.ParseErrorLog(page(nvme.LogError, 64*64))
	must(t, err)
	if len(errs) < 2 || errs[0].OPC != 0x7e || errs[0].Status().Code() != nvme.StatusInvalidOpcode || errs[0].ECNT <= errs[1].ECNT {
		t.Errorf("%d errors", len(errs))
	}
}

// TestLogOffset reads a log page in pieces, and beyond its end.
func TestLogOffset(t *testing.T) {
	admin := newLab(t, oneNamespace(backend.NewHeap(1<<20))).admin(connectOptions{})
	whole, cpl := admin.log(nvme.GetLogPageCommand{LID: nvme.LogCommandEffects, Length: 4096})
	admin.ok(cpl)
	part, cpl := admin.log(nvme.GetLogPageCommand{LID: nvme.LogCommandEffects, Length: 1024, Offset: 1000})
	admin.ok(cpl)
	same(t, "part", part, whole[1000:2024])
	tail, cpl := admin.log(nvme.GetLogPageCommand{LID: nvme.LogCommandEffects, Length: 200, Offset: 4000})
	admin.ok(cpl)
	same(t, "tail", tail, append(append([]byte(nil), whole[4000:]...), make([]byte, 104)...))
	_, cpl = admin.log(nvme.GetLogPageCommand{LID: nvme.LogCommandEffects, Length: 4, Offset: 4100})
	admin.is(cpl, nvme.StatusInvalidField|dnr)
	_, cpl = admin.log(nvme.GetLogPageCommand{LID: nvme.LogCommandEffects, Length: 4 << 20})
	admin.is(cpl, nvme.StatusInvalidField|dnr)
	_, cpl = admin.log(nvme.GetLogPageCommand{LID: nvme.LogCommandEffects, Length: 4, Offset: 8, Index: true})
	admin.is(cpl, nvme.StatusInvalidField|dnr)
	_, cpl = admin.log(nvme.GetLogPageCommand{LID: nvme.LogSMART, NSID: 1, Length: 512})
	admin.is(cpl, nvme.StatusInvalidField|dnr)
	cmd, err := nvme.GetLogPageCommand{LID: nvme.LogSMART, Length: 512}.Command()
	must(t, err)
	cmd.CDW12 = 2
	_, cpl = admin.in(cmd, 512)
	admin.is(cpl, nvme.StatusInvalidField|dnr)
}
