package pcietest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// get executes a command that returns data.
func (d *driver) get(cmd nvme.Command, n int) []byte {
	d.t.Helper()
	cmd.DPTR[0] = d.alloc(n)
	if n > int(d.page) {
		cmd.DPTR[1] = cmd.DPTR[0] + d.page
	}
	d.ok(0, cmd)
	return d.at(cmd.DPTR[0], n)
}

func (d *driver) log(id nvme.LogID, n int) []byte {
	d.t.Helper()
	cmd, err := nvme.GetLogPageCommand{LID: id, Length: uint64(n), NSID: nvme.NSIDAll}.Command()
	d.must(err)
	return d.get(cmd, n)
}

func TestQueueErrors(t *testing.T) {
	d := newDriver(t, Config{IOQueues: 4, QueueEntries: 64, Interrupts: 2}).enable()
	b := d.alloc(4096)
	cq := nvme.CreateCQCommand{QID: 1, Size: 15, Address: b, Contiguous: true}
	sq := nvme.CreateSQCommand{QID: 1, Size: 15, Address: b, Contiguous: true, CQID: 1}
	ccq := func(f func(*nvme.CreateCQCommand)) nvme.Command { c := cq; f(&c); return c.Command() }
	csq := func(f func(*nvme.CreateSQCommand)) nvme.Command { c := sq; f(&c); return c.Command() }
	d.fails(0, sq.Command(), nvme.StatusCompletionQueueInvalid)
	d.ok(0, cq.Command())
	d.ok(0, sq.Command())
	for _, c := range []struct {
		name string
		cmd  nvme.Command
		want nvme.Status
	}{
		{"CQ 0", ccq(func(c *nvme.CreateCQCommand) { c.QID = 0 }), nvme.StatusInvalidQueueIdentifier},
		{"CQ again", cq.Command(), nvme.StatusInvalidQueueIdentifier},
		{"CQ beyond", ccq(func(c *nvme.CreateCQCommand) { c.QID = 5 }), nvme.StatusInvalidQueueIdentifier},
		{"CQ of one entry", ccq(func(c *nvme.CreateCQCommand) { c.QID, c.Size = 2, 0 }), nvme.StatusInvalidQueueSize},
		{"CQ too long", ccq(func(c *nvme.CreateCQCommand) { c.QID, c.Size = 2, 64 }), nvme.StatusInvalidQueueSize},
		{"CQ offset", ccq(func(c *nvme.CreateCQCommand) { c.QID, c.Address = 2, b+64 }), nvme.StatusPRPOffsetInvalid},
		{"CQ nowhere", ccq(func(c *nvme.CreateCQCommand) { c.QID, c.Address = 2, 0 }), nvme.StatusPRPOffsetInvalid},
		{"CQ scattered", ccq(func(c *nvme.CreateCQCommand) { c.QID, c.Contiguous = 2, false }), nvme.StatusInvalidField},
		{"CQ vector", ccq(func(c *nvme.CreateCQCommand) { c.QID, c.Interrupts, c.Vector = 2, true, 2 }), nvme.StatusInvalidInterruptVector},
		{"SQ 0", csq(func(c *nvme.CreateSQCommand) { c.QID = 0 }), nvme.StatusInvalidQueueIdentifier},
		{"SQ again", sq.Command(), nvme.StatusInvalidQueueIdentifier},
		{"SQ beyond", csq(func(c *nvme.CreateSQCommand) { c.QID = 5 }), nvme.StatusInvalidQueueIdentifier},
		{"SQ of CQ 0", csq(func(c *nvme.CreateSQCommand) { c.QID, c.CQID = 2, 0 }), nvme.StatusCompletionQueueInvalid},
		{"SQ of no CQ", csq(func(c *nvme.CreateSQCommand) { c.QID, c.CQID = 2, 9 }), nvme.StatusCompletionQueueInvalid},
		{"SQ of one entry", csq(func(c *nvme.CreateSQCommand) { c.QID, c.Size = 2, 0 }), nvme.StatusInvalidQueueSize},
		{"SQ too long", csq(func(c *nvme.CreateSQCommand) { c.QID, c.Size = 2, 64 }), nvme.StatusInvalidQueueSize},
		{"SQ offset", csq(func(c *nvme.CreateSQCommand) { c.QID, c.Address = 2, b+64 }), nvme.StatusPRPOffsetInvalid},
		{"SQ scattered", csq(func(c *nvme.CreateSQCommand) { c.QID, c.Contiguous = 2, false }), nvme.StatusInvalidField},
		{"delete CQ with SQ", nvme.DeleteCQCommand(1), nvme.StatusInvalidQueueDeletion},
		{"delete CQ 0", nvme.DeleteCQCommand(0), nvme.StatusInvalidQueueIdentifier},
		{"delete no CQ", nvme.DeleteCQCommand(2), nvme.StatusInvalidQueueIdentifier},
		{"delete CQ beyond", nvme.DeleteCQCommand(5), nvme.StatusInvalidQueueIdentifier},
		{"delete SQ 0", nvme.DeleteSQCommand(0), nvme.StatusInvalidQueueIdentifier},
		{"delete no SQ", nvme.DeleteSQCommand(2), nvme.StatusInvalidQueueIdentifier},
		{"delete SQ beyond", nvme.DeleteSQCommand(6), nvme.StatusInvalidQueueIdentifier},
		{"no opcode", nvme.Command{Opcode: nvme.AdminSanitize}, nvme.StatusInvalidOpcode},
		{"fused", nvme.Command{Opcode: nvme.AdminIdentify, Flags: nvme.FlagFuseFirst}, nvme.StatusInvalidField},
		{"namespace management", nvme.NamespaceManagementCommand{}.Command(), nvme.StatusInvalidOpcode},
		{"namespace attachment", nvme.NamespaceAttachmentCommand{NSID: 1}.Command(), nvme.StatusInvalidOpcode},
	} {
		t.Run(c.name, func(t *testing.T) { d.t = t; d.fails(0, c.cmd, c.want) })
	}
	d.t = t
	d.ok(0, nvme.DeleteSQCommand(1))
	d.ok(0, nvme.DeleteCQCommand(1))
	d.queue(4, 64)
	d.ok(4, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
	d.noFaults()
}

// TestManyQueues is wire case 18, the device's side: doorbells beyond the first
// pages, with a stride, and the largest queue that there is.
func TestManyQueues(t *testing.T) {
	d := newDriver(t, Config{IOQueues: 1500, DoorbellStride: 2, QueueEntries: 4096}).enable()
	if n := d.ok(0, nvme.SetFeaturesCommand{FeatureID: nvme.FeatNumberOfQueues, Value: 1999<<16 | 1999}.Command()); n != 1499<<16|1499 {
		t.Errorf("%#x queues were granted", n)
	}
	for _, qid := range []uint16{1, 512, 513, 1500} {
		d.queue(qid, 4096)
		b := d.alloc(4096)
		for range 3 {
			d.ok(qid, rw(nvme.OpRead, 1, 0, 1, b))
		}
	}
	d.fails(0, nvme.SetFeaturesCommand{FeatureID: nvme.FeatNumberOfQueues}.Command(), nvme.StatusCommandSequenceError)
	d.noFaults()
}

func TestIdentify(t *testing.T) {
	d := newDriver(t, Config{
		Serial: "S1", Model: "M1", Firmware: "F1", ANA: true, Capacity: 1 << 20, ControllerID: 9, MinPage: 1, MaxTransfer: 64 << 10,
		Namespaces: []NamespaceConfig{{Size: 1 << 20, Shared: true}, {NSID: 7, BlockSize: 4096, Size: 1 << 20, NGUID: [16]byte{1}, EUI64: [8]byte{2}},
			{NSID: 9, Detached: true, ReadOnly: true, ANAGroup: 3}},
	}).enable()
	id := func(i nvme.IdentifyCommand) []byte { t.Helper(); return d.get(i.Command(), 4096) }
	var ctrl nvme.IdentifyController
	d.must(ctrl.UnmarshalBinary(id(nvme.IdentifyCommand{CNS: nvme.CNSController})))
	if ctrl.SerialNumber() != "S1" || ctrl.ModelNumber() != "M1" || ctrl.FirmwareRevision() != "F1" || ctrl.CNTLID != 9 || ctrl.NN != 64 ||
		ctrl.MaxTransferSize(8192) != 64<<10 || ctrl.CMIC&nvme.CMICMultipleControllers == 0 ||
		ctrl.SQES != 0x66 || ctrl.CQES != 0x44 || ctrl.TNVMCAP.Lo != 3<<20+DefaultSize || ctrl.UNVMCAP.Lo != 1<<20 {
		t.Errorf("%+v", ctrl)
	}
	if nqn, err := ctrl.SubsystemNQN(); nqn != DefaultNQN || err != nil {
		t.Errorf("NQN %q, %v", nqn, err)
	}
	var ns nvme.IdentifyNamespace
	d.must(ns.UnmarshalBinary(id(nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: 7})))
	if ns.NSZE != 256 || ns.FormatIndex() != 1 || ns.LBAF[1].LBADS != 12 || ns.NGUID[0] != 1 || ns.EUI64[0] != 2 || ns.ANAGRPID != 1 {
		t.Errorf("%+v", ns)
	}
	for _, c := range []struct {
		cns  nvme.CNS
		want []uint32
	}{{nvme.CNSActiveNamespaces, []uint32{1, 7}}, {nvme.CNSAllocatedNamespaces, []uint32{1, 7, 9}}, {nvme.CNSActiveNamespacesCS, []uint32{1, 7}}} {
		got, err := nvme.ParseNamespaceList(id(nvme.IdentifyCommand{CNS: c.cns}), 0)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v, want %v", c.cns, got, err, c.want)
		}
	}
	var who nvme.NamespaceIdentity
	d.must(who.UnmarshalBinary(id(nvme.IdentifyCommand{CNS: nvme.CNSNamespaceDescriptors, NSID: 1})))
	if who.UUID == [16]byte{} || who.UUID[6]>>4 != 8 || !who.HasCSI {
		t.Errorf("%+v", who)
	}
	for _, i := range []nvme.IdentifyCommand{
		{CNS: nvme.CNSNamespaceCS, NSID: 1}, {CNS: nvme.CNSControllerCS}, {CNS: nvme.CNSNamespaceIndependent, NSID: 7},
		{CNS: nvme.CNSAllocatedNamespace, NSID: 9}, {CNS: nvme.CNSNamespaceControllers, NSID: 7}, {CNS: nvme.CNSControllers},
		{CNS: nvme.CNSIOCommandSets}, {CNS: nvme.CNSNamespace, NSID: 9}, {CNS: nvme.CNSNamespace, NSID: nvme.NSIDAll},
	} {
		id(i)
	}
	for _, c := range []struct {
		i    nvme.IdentifyCommand
		want nvme.Status
	}{
		{nvme.IdentifyCommand{CNS: 0xee}, nvme.StatusInvalidField},
		{nvme.IdentifyCommand{CNS: nvme.CNSNamespace}, nvme.StatusInvalidNamespace},
		{nvme.IdentifyCommand{CNS: nvme.CNSNamespace, NSID: 65}, nvme.StatusInvalidNamespace},
		{nvme.IdentifyCommand{CNS: nvme.CNSNamespaceDescriptors, NSID: 2}, nvme.StatusInvalidField},
		{nvme.IdentifyCommand{CNS: nvme.CNSActiveNamespaces, NSID: nvme.NSIDAll}, nvme.StatusInvalidNamespace},
		{nvme.IdentifyCommand{CNS: nvme.CNSNamespaceCS, NSID: 1, CSI: nvme.CSIZoned}, nvme.StatusInvalidIOCommandSet},
		{nvme.IdentifyCommand{CNS: nvme.CNSControllerCS, CSI: nvme.CSIZoned}, nvme.StatusInvalidIOCommandSet},
	} {
		d.fails(0, d.identify(c.i), c.want)
	}
	d.noFaults()
}

func TestFeatures(t *testing.T) {
	d := newDriver(t, Config{IOQueues: 8, Interrupts: 4}).enable()
	get := func(id nvme.FeatureID, sel uint8, v uint32) uint64 {
		t.Helper()
		return d.ok(0, nvme.GetFeaturesCommand{FeatureID: id, Select: sel, Value: v}.Command())
	}
	set := func(id nvme.FeatureID, v uint32) uint64 {
		t.Helper()
		return d.ok(0, nvme.SetFeaturesCommand{FeatureID: id, Value: v}.Command())
	}
	if got := set(nvme.FeatNumberOfQueues, 2<<16|3); got != 2<<16|3 {
		t.Errorf("granted %#x", got)
	}
	if get(nvme.FeatNumberOfQueues, 0, 0) != 2<<16|3 || get(nvme.FeatNumberOfQueues, nvme.SelectDefault, 0) != 7<<16|7 {
		t.Error("Number of Queues is not what was granted")
	}
	d.fails(0, nvme.CreateCQCommand{QID: 4, Size: 3, Address: d.alloc(64), Contiguous: true}.Command(), nvme.StatusInvalidQueueIdentifier)
	set(nvme.FeatTemperatureThreshold, 300)
	if get(nvme.FeatTemperatureThreshold, 0, 0) != 300 || get(nvme.FeatTemperatureThreshold, nvme.SelectDefault, 0) != 343 ||
		get(nvme.FeatTemperatureThreshold, nvme.SelectCapabilities, 0) != uint64(nvme.FeatureCapabilityChangeable) {
		t.Error("Temperature Threshold")
	}
	if get(nvme.FeatInterruptVector, 0, 3) != 3 {
		t.Error("Interrupt Vector Configuration")
	}
	for _, c := range []struct {
		cmd  nvme.Command
		want nvme.Status
	}{
		{nvme.GetFeaturesCommand{FeatureID: nvme.FeatFDP}.Command(), nvme.StatusInvalidField},
		{nvme.SetFeaturesCommand{FeatureID: nvme.FeatFDP}.Command(), nvme.StatusInvalidField},
		{nvme.SetFeaturesCommand{FeatureID: nvme.FeatArbitration, Save: true}.Command(), nvme.StatusFeatureNotSaveable},
		{nvme.SetFeaturesCommand{FeatureID: nvme.FeatNumberOfQueues, Value: 0xffff}.Command(), nvme.StatusInvalidField},
		{nvme.SetFeaturesCommand{FeatureID: nvme.FeatIOCommandSetProfile, Value: 1}.Command(), nvme.StatusIOCommandSetCombination},
		{nvme.SetFeaturesCommand{FeatureID: nvme.FeatInterruptVector, Value: 4}.Command(), nvme.StatusInvalidField},
		{nvme.GetFeaturesCommand{FeatureID: nvme.FeatInterruptVector, Value: 4}.Command(), nvme.StatusInvalidField},
		{nvme.SetFeaturesCommand{FeatureID: nvme.FeatTimestamp}.Command(), nvme.StatusDataTransferError},
	} {
		d.fails(0, c.cmd, c.want)
	}
	d.c.ClearFaults()
	stamp := nvme.SetFeaturesCommand{FeatureID: nvme.FeatTimestamp}.Command()
	stamp.DPTR[0] = d.alloc(8)
	ts := nvme.MakeTimestamp(time.UnixMilli(1_700_000_000_000))
	copy(d.at(stamp.DPTR[0], 8), ts[:])
	d.ok(0, stamp)
	d.now += int64(5 * time.Second)
	copy(ts[:], d.get(nvme.GetFeaturesCommand{FeatureID: nvme.FeatTimestamp}.Command(), 8))
	if ms := ts.Milliseconds(); ms < 1_700_000_005_000 || ms > 1_700_000_006_000 {
		t.Errorf("timestamp %d", ms)
	}
	host := nvme.SetFeaturesCommand{FeatureID: nvme.FeatHostIdentifier, Value: 1}.Command()
	host.DPTR[0] = d.alloc(16)
	fill(d.at(host.DPTR[0], 16), 4)
	d.ok(0, host)
	if got := d.get(nvme.GetFeaturesCommand{FeatureID: nvme.FeatHostIdentifier, Value: 1}.Command(), 16); got[15] != 19 {
		t.Errorf("host identifier % x", got)
	}
	d.get(nvme.GetFeaturesCommand{FeatureID: nvme.FeatHostBehavior}.Command(), 512)
	d.noFaults()
}

func TestKeepAlive(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.ok(0, nvme.SetFeaturesCommand{FeatureID: nvme.FeatKeepAliveTimer, Value: nvme.KeepAliveValue(10 * time.Second)}.Command())
	for range 3 {
		d.now += int64(9 * time.Second)
		d.ok(0, nvme.Command{Opcode: nvme.AdminKeepAlive})
	}
	d.now += int64(11 * time.Second)
	d.step()
	if s := d.csts(); !s.CFS() {
		t.Errorf("CSTS is %v", s)
	}
}

func TestLogs(t *testing.T) {
	d := newDriver(t, Config{ANA: true}).enable()
	d.queue(1, 8)
	d.fails(1, rw(nvme.OpRead, 5, 3, 1), nvme.StatusInvalidField)
	entries, err := nvme.ParseErrorLog(d.log(nvme.LogError, 4096))
	if err != nil || len(entries) != 1 || entries[0].SQID != 1 || entries[0].NSID != 5 || entries[0].LBA != 3 || entries[0].Status().Code() != nvme.StatusInvalidField {
		t.Errorf("%+v, %v", entries, err)
	}
	var smart nvme.SMARTLog
	d.must(smart.UnmarshalBinary(d.log(nvme.LogSMART, 512)))
	if smart.Temperature() != 313 || smart.HostReads.Lo != 1 || smart.ErrorLogEntries.Lo != 1 {
		t.Errorf("%+v", smart)
	}
	var fw nvme.FirmwareSlotLog
	d.must(fw.UnmarshalBinary(d.log(nvme.LogFirmwareSlot, 512)))
	if fw.Revision(1) != "1" {
		t.Errorf("firmware %q", fw.Revision(1))
	}
	var fx nvme.CommandEffectsLog
	d.must(fx.UnmarshalBinary(d.log(nvme.LogCommandEffects, 4096)))
	if !fx.Admin[nvme.AdminIdentify].Supported() || fx.Admin[nvme.AdminSanitize].Supported() || !fx.IO[nvme.OpCopy].Supported() {
		t.Error("effects")
	}
	var pages nvme.SupportedLogPages
	d.must(pages.UnmarshalBinary(d.log(nvme.LogSupportedPages, 1024)))
	if !pages.Pages[nvme.LogANA].Supported() {
		t.Error("the ANA log is not reported")
	}
	d.log(nvme.LogFeatureEffects, 1024)
	for _, c := range []struct {
		g    nvme.GetLogPageCommand
		want nvme.Status
	}{
		{nvme.GetLogPageCommand{LID: 0xd0, Length: 512}, nvme.StatusInvalidLogPage},
		{nvme.GetLogPageCommand{LID: nvme.LogSMART, Length: 512, NSID: 1}, nvme.StatusInvalidField},
		{nvme.GetLogPageCommand{LID: nvme.LogSMART, Length: 512, Offset: 1024}, nvme.StatusInvalidField},
		{nvme.GetLogPageCommand{LID: nvme.LogSMART, Length: 512, Index: true}, nvme.StatusInvalidField},
		{nvme.GetLogPageCommand{LID: nvme.LogSMART, Length: 2 << 20}, nvme.StatusInvalidField},
	} {
		cmd, err := c.g.Command()
		d.must(err)
		cmd.DPTR[0] = d.alloc(4096)
		d.fails(0, cmd, c.want)
	}
	d.noFaults()
}

// events takes the events that have come.
func (d *driver) event() (nvme.AsyncEvent, bool) {
	d.step()
	cpl, ok := d.reap(0)
	return nvme.AsyncEvent(cpl.Result), ok
}

func TestAsyncEvents(t *testing.T) {
	d := newDriver(t, Config{ANA: true}).enable()
	aer := nvme.Command{Opcode: nvme.AdminAsyncEvent}
	want := func(page nvme.LogID) {
		t.Helper()
		if e, ok := d.event(); !ok || e.LogPage() != page {
			t.Fatalf("event %v, %v", e, ok)
		}
	}
	none := func() {
		t.Helper()
		if e, ok := d.event(); ok {
			t.Fatalf("event %v", e)
		}
	}
	d.put(0, aer)
	d.ring(0)
	// Nobody has asked for it.
	id, err := d.c.AddNamespace(NamespaceConfig{Size: 1 << 20})
	d.must(err)
	none()
	d.ok(0, nvme.SetFeaturesCommand{FeatureID: nvme.FeatAsyncEventConfiguration, Value: nvme.AsyncConfigNamespaceAttribute | nvme.AsyncConfigANAChange}.Command())
	d.must(d.c.RemoveNamespace(id))
	want(nvme.LogChangedNamespaces)
	// Before the log was read, there is no other, and the requests wait.
	d.put(0, aer)
	d.put(0, aer)
	d.ring(0)
	d.must(d.c.SetReadOnly(1, true))
	none()
	d.must(d.c.SetANA(1, nvme.ANAInaccessible))
	want(nvme.LogANA)
	ids, _, err := nvme.ParseChangedNamespaces(d.get(func() nvme.Command {
		cmd, err := nvme.GetLogPageCommand{LID: nvme.LogChangedNamespaces, Length: 4096}.Command()
		d.must(err)
		return cmd
	}(), 4096))
	if err != nil || !slices.Equal(ids, []uint32{1, 2}) {
		t.Errorf("changed namespaces %v, %v", ids, err)
	}
	want(nvme.LogChangedNamespaces)
	d.c.Notify(nvme.MakeAsyncEvent(nvme.AsyncError, 3, nvme.LogError, 0))
	none() // no request
	d.put(0, aer)
	d.ring(0)
	want(nvme.LogError)
	// The limit, an abort, and a reset.
	for range asyncLimit {
		d.put(0, aer)
	}
	last := d.cid
	d.ring(0)
	none()
	d.fails(0, aer, nvme.StatusAsyncEventLimitExceeded)
	abort := nvme.AbortCommand{SQID: 0, CID: last}.Command()
	d.put(0, abort)
	d.ring(0)
	if cpl := d.wait(0); cpl.CID != last || cpl.Status().Code() != nvme.StatusAbortRequested {
		t.Errorf("%+v", cpl)
	}
	if cpl := d.wait(0); cpl.Status() != 0 || cpl.Result != 0 {
		t.Errorf("%+v", cpl)
	}
	if got := d.ok(0, abort); got != uint64(nvme.AbortNotPerformed) {
		t.Errorf("abort of what is gone: %d", got)
	}
	d.fails(0, nvme.AbortCommand{SQID: 9}.Command(), nvme.StatusInvalidField)
	d.disable()
	d.enable()
	none()
}

func TestANA(t *testing.T) {
	d := newDriver(t, Config{ANA: true, Namespaces: []NamespaceConfig{{Size: 1 << 20}, {Size: 1 << 20, ANAGroup: 2}}}).enable()
	d.queue(1, 8)
	b := d.alloc(4096)
	for _, c := range []struct {
		state nvme.ANAState
		want  nvme.Status
	}{{nvme.ANAInaccessible, nvme.StatusANAInaccessible}, {nvme.ANAPersistentLoss, nvme.StatusANAPersistentLoss}, {nvme.ANAChange, nvme.StatusANATransition}, {nvme.ANANonOptimized, 0}} {
		d.must(d.c.SetANA(2, c.state))
		d.fails(1, rw(nvme.OpRead, 2, 0, 1, b), c.want)
		d.ok(1, rw(nvme.OpRead, 1, 0, 1, b))
		var l nvme.ANALog
		d.must(l.UnmarshalBinary(d.log(nvme.LogANA, int(nvme.ANALogSize(2, 2)))))
		if len(l.Groups) != 2 || l.Groups[1].State != c.state || !slices.Equal(l.Groups[1].NSIDs, []uint32{2}) {
			t.Errorf("%+v", l)
		}
	}
	for _, g := range []uint32{0, 33} {
		if err := d.c.SetANA(g, nvme.ANAOptimized); !errors.Is(err, ErrConfig) {
			t.Errorf("group %d: %v", g, err)
		}
	}
}

func TestNamespaceManagement(t *testing.T) {
	d := newDriver(t, Config{Capacity: 4 << 20, MaxNamespaces: 3, Namespaces: []NamespaceConfig{{Size: 1 << 20}}}).enable()
	d.queue(1, 8)
	create := func(n nvme.NamespaceCreate) nvme.Command {
		t.Helper()
		cmd := nvme.NamespaceManagementCommand{}.Command()
		b, err := n.AppendBinary(nil)
		d.must(err)
		cmd.DPTR[0] = d.alloc(4096)
		copy(d.at(cmd.DPTR[0], 4096), b)
		return cmd
	}
	attach := func(nsid uint32, detach bool, ids ...uint16) nvme.Command {
		t.Helper()
		cmd := nvme.NamespaceAttachmentCommand{NSID: nsid, Detach: detach}.Command()
		b, err := nvme.AppendIdentifierList(nil, ids)
		d.must(err)
		cmd.DPTR[0] = d.alloc(4096)
		copy(d.at(cmd.DPTR[0], 4096), b)
		return cmd
	}
	good := nvme.NamespaceCreate{NSZE: 256, NCAP: 256, FLBAS: 1}
	if id := d.ok(0, create(good)); id != 2 {
		t.Fatalf("namespace %d", id)
	}
	b := d.alloc(8192)
	d.fails(1, rw(nvme.OpRead, 2, 0, 1, b), nvme.StatusInvalidField)
	for _, c := range []struct {
		cmd  nvme.Command
		want nvme.Status
	}{
		{create(nvme.NamespaceCreate{NSZE: 2, NCAP: 1}), nvme.StatusThinProvisioningNotSupported},
		{create(nvme.NamespaceCreate{}), nvme.StatusInvalidField},
		{create(nvme.NamespaceCreate{NSZE: 1, NCAP: 1, FLBAS: 2}), nvme.StatusInvalidFormat},
		{create(nvme.NamespaceCreate{NSZE: 1, NCAP: 1, ANAGRPID: 99}), nvme.StatusANAGroupIdentifierInvalid},
		{create(nvme.NamespaceCreate{NSZE: 3<<11 + 1, NCAP: 3<<11 + 1}), nvme.StatusNamespaceInsufficientCapacity},
		{create(nvme.NamespaceCreate{NSZE: 1 << 62, NCAP: 1 << 62}), nvme.StatusNamespaceInsufficientCapacity},
		{attach(2, false), nvme.StatusControllerListInvalid},
		{attach(2, false, 7), nvme.StatusControllerListInvalid},
		{attach(2, true, 1), nvme.StatusNamespaceNotAttached},
		{attach(1, false, 1), nvme.StatusNamespaceAlreadyAttached},
		{attach(3, false, 1), nvme.StatusInvalidField},
		{attach(4, false, 1), nvme.StatusInvalidNamespace},
		{nvme.NamespaceManagementCommand{Delete: true, NSID: 3}.Command(), nvme.StatusInvalidField},
		{nvme.Command{Opcode: nvme.AdminNamespaceManagement, CDW10: 7}, nvme.StatusInvalidField},
		{nvme.Command{Opcode: nvme.AdminNamespaceManagement, CDW11: 2 << 24}, nvme.StatusIOCommandSetNotSupported},
		{nvme.Command{Opcode: nvme.AdminNamespaceAttachment, NSID: 2, CDW10: 7}, nvme.StatusInvalidField},
	} {
		d.fails(0, c.cmd, c.want)
	}
	d.ok(0, attach(2, false, 1))
	d.ok(1, rw(nvme.OpRead, 2, 255, 1, b))
	d.ok(0, create(nvme.NamespaceCreate{NSZE: 1, NCAP: 1}))
	d.fails(0, create(nvme.NamespaceCreate{NSZE: 1, NCAP: 1}), nvme.StatusNamespaceIDUnavailable)
	d.ok(0, attach(2, true, 1))
	d.fails(1, rw(nvme.OpRead, 2, 0, 1, b), nvme.StatusInvalidField)
	d.ok(0, nvme.NamespaceManagementCommand{Delete: true, NSID: 2}.Command())
	if id := d.ok(0, create(good)); id != 2 {
		t.Errorf("namespace %d", id)
	}
	d.ok(0, nvme.NamespaceManagementCommand{Delete: true, NSID: nvme.NSIDAll}.Command())
	d.fails(1, rw(nvme.OpRead, 1, 0, 1, b), nvme.StatusInvalidField)
	d.noFaults()
}

func TestFormat(t *testing.T) {
	d := newDriver(t, Config{Namespaces: []NamespaceConfig{{Size: 1 << 20}, {Size: 1024}, {Size: 1 << 20, ReadOnly: true}}}).enable()
	d.queue(1, 8)
	b := d.alloc(4096)
	fill(d.at(b, 4096), 1)
	d.ok(1, rw(nvme.OpWrite, 1, 0, 8, b))
	d.ok(0, nvme.FormatCommand{NSID: 1, Index: 1}.Command())
	d.ok(1, rw(nvme.OpRead, 1, 0, 1, b))
	if d.at(b, 4096)[4000] != 0 {
		t.Error("data outlived the format")
	}
	d.fails(1, rw(nvme.OpRead, 1, 256, 1, b), nvme.StatusLBAOutOfRange)
	for _, c := range []struct {
		f    nvme.FormatCommand
		want nvme.Status
	}{
		{nvme.FormatCommand{NSID: 1, Index: 2}, nvme.StatusInvalidFormat},
		{nvme.FormatCommand{NSID: 1, Extended: true}, nvme.StatusInvalidFormat},
		{nvme.FormatCommand{NSID: 1, Erase: 3}, nvme.StatusInvalidField},
		{nvme.FormatCommand{NSID: 2, Index: 1}, nvme.StatusInvalidFormat},
		{nvme.FormatCommand{NSID: 3}, nvme.StatusNamespaceWriteProtected},
		{nvme.FormatCommand{NSID: 4}, nvme.StatusInvalidField},
		{nvme.FormatCommand{NSID: 0}, nvme.StatusInvalidNamespace},
		{nvme.FormatCommand{NSID: nvme.NSIDAll}, nvme.StatusNamespaceWriteProtected},
	} {
		d.fails(0, c.f.Command(), c.want)
	}
	d.noFaults()
}

// TestWeighted serves queues by their priority.
func TestWeighted(t *testing.T) {
	d := newDriver(t, Config{Weighted: true})
	d.prepare(16)
	d.must(d.dev.Write32(nvme.RegCC, uint32(d.cc())|1<<11))
	d.ok(0, nvme.SetFeaturesCommand{FeatureID: nvme.FeatArbitration, Value: 7<<24 | 3<<16 | 1<<8}.Command())
	for qid, prio := range map[uint16]uint8{1: nvme.PriorityLow, 2: nvme.PriorityMedium, 3: nvme.PriorityHigh, 4: nvme.PriorityUrgent} {
		cq := &ring{base: d.alloc(64 * 16), size: 64, phase: 1}
		sq := &ring{base: d.alloc(64 * 64), size: 64}
		d.ok(0, nvme.CreateCQCommand{QID: qid, Size: 63, Address: cq.base, Contiguous: true}.Command())
		d.ok(0, nvme.CreateSQCommand{QID: qid, Size: 63, Address: sq.base, Contiguous: true, CQID: qid, Priority: prio}.Command())
		d.cqs[qid], d.sqs[qid] = cq, sq
	}
	for qid := uint16(1); qid <= 4; qid++ {
		for range 40 {
			d.put(qid, nvme.Command{Opcode: nvme.OpFlush, NSID: 1})
		}
		d.ring(qid)
	}
	d.step()
	for qid, want := range map[uint16]int{1: 2, 2: 4, 3: 8, 4: 40} {
		n := 0
		for _, ok := d.reap(qid); ok; _, ok = d.reap(qid) {
			n++
		}
		if n != want {
			t.Errorf("queue %d: %d commands in the first pass, want %d", qid, n, want)
		}
	}
}
