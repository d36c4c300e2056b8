//go:build guest

package interop

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
)

const (
	uuid1  = "6a2f5d3c-91c4-4e7e-8f0e-5b1f3c7d9e21"
	uuid2  = "0f4c9b7a-2d11-4c55-a3f1-7e6d5c4b3a29"
	nguid1 = "00112233-4455-6677-8899-aabbccddeeff"
)

// testIdentify compares what the initiator makes of the controller and its
// namespaces with what the kernel was told.
func testIdentify(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort,
		nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 16}, UUID: uuid1, NGUID: nguid1},
		nvmet.NamespaceConfig{NSID: 7, Backend: nvmet.NullBlk{MiB: 8, BlockSize: 4096}, UUID: uuid2},
		nvmet.NamespaceConfig{NSID: 1000, Backend: nvmet.File{MiB: 4}})
	h := e.connect(t, 0, nvme.Config{IOQueues: 2})
	id := h.Identify()
	nqn, err := id.SubsystemNQN()
	check(t, err)
	if nqn != e.sub.NQN() || id.SerialNumber() == "" || id.ModelNumber() != "kernel target" || id.FirmwareRevision() != "FW7" {
		t.Errorf("subsystem %q, serial %q, model %q, firmware %q", nqn, id.SerialNumber(), id.ModelNumber(), id.FirmwareRevision())
	}
	if h.IOQueues() != 2 || h.Version() == 0 || id.IsDiscovery() || !id.ReportsANA() || id.NN < 1000 {
		t.Errorf("%d I/O queues, version %v, NN %d", h.IOQueues(), h.Version(), id.NN)
	}
	list, err := h.ActiveNamespaces(ctx)
	check(t, err)
	if !slices.Equal(list, []uint32{1, 7, 1000}) {
		t.Errorf("active namespaces %v", list)
	}
	for _, c := range []struct {
		nsid        uint32
		size        int64
		block       int
		uuid, nguid string
	}{{1, 16 << 20, 512, uuid1, nguid1}, {7, 8 << 20, 4096, uuid2, ""}, {1000, 4 << 20, 4096, "", ""}} {
		ns := h.namespace(t, c.nsid)
		if ns.Size() != c.size || ns.BlockSize() != c.block || !ns.Shared() || ns.ANAGroup() != 1 {
			t.Errorf("namespace %d: %d bytes, blocks of %d, shared %v, group %d", c.nsid, ns.Size(), ns.BlockSize(), ns.Shared(), ns.ANAGroup())
		}
		ids := ns.IDs()
		if got := nvme.FormatUUID(ids.UUID); c.uuid != "" && got != c.uuid {
			t.Errorf("namespace %d: UUID %s, want %s", c.nsid, got, c.uuid)
		}
		if got := nvme.FormatUUID(ids.NGUID); c.nguid != "" && got != c.nguid {
			t.Errorf("namespace %d: NGUID %s, want %s", c.nsid, got, c.nguid)
		}
	}
	for _, nsid := range []uint32{0, 2, 999, 1001, 0xfffffffe, nvme.NSIDAll} {
		if _, err := h.Namespace(ctx, nsid); !errors.Is(err, nvme.ErrNoNamespace) {
			t.Errorf("namespace %#x: %v", nsid, err)
		}
	}
	t.Run("Passthrough", func(t *testing.T) { testPassthrough(t, h) })
	t.Run("Features", func(t *testing.T) { testFeatures(t, h) })
	t.Run("Logs", func(t *testing.T) { testLogs(t, h) })
}

// testPassthrough sends raw commands of both kinds.
func testPassthrough(t *testing.T, h *host) {
	ctx := t.Context()
	raw := make([]byte, nvme.IdentifyDataSize)
	_, err := h.Admin(ctx, &nvme.Command{Opcode: nvme.AdminIdentify, CDW10: uint32(nvme.CNSController)}, raw)
	check(t, err)
	var id nvme.IdentifyController
	check(t, id.UnmarshalBinary(raw))
	if id != *h.Identify() {
		t.Errorf("Identify Controller by passthrough: %+v", id)
	}
	_, err = h.Admin(ctx, &nvme.Command{Opcode: 0xc5}, nil)
	if !errors.Is(err, nvme.StatusInvalidOpcode) {
		t.Errorf("vendor specific admin command: %v", err)
	}
	ns := h.namespace(t, 1)
	want, got := make([]byte, 3*512), make([]byte, 3*512)
	pattern.Fill(want, 1, 2)
	_, err = ns.Passthrough(ctx, &nvme.Command{Opcode: nvme.OpWrite, CDW10: 100, CDW12: 2}, want)
	check(t, err)
	_, err = ns.Passthrough(ctx, &nvme.Command{Opcode: nvme.OpRead, CDW10: 100, CDW12: 2}, got)
	check(t, err)
	if !bytes.Equal(got, want) {
		t.Error("read by passthrough is not what was written")
	}
	_, err = ns.Passthrough(ctx, &nvme.Command{Opcode: nvme.OpRead, CDW10: uint32(ns.Blocks())}, got[:512])
	if !errors.Is(err, nvme.StatusInternalError) { // the block layer's opinion
		t.Errorf("raw read beyond the end: %v", err)
	}
	_, err = ns.Passthrough(ctx, &nvme.Command{Opcode: nvme.OpCompare, CDW10: 100, CDW12: 2}, want)
	if !errors.Is(err, nvme.StatusInvalidOpcode) {
		t.Errorf("raw Compare: %v", err)
	}
	// A length other than that of the command is refused by the target.
	if _, err = ns.Passthrough(ctx, &nvme.Command{Opcode: nvme.OpRead, CDW10: 100, CDW12: 2}, got[:512]); err == nil {
		t.Error("a raw read of 3 blocks into one was fine")
	}
}

func testFeatures(t *testing.T, h *host) {
	ctx := t.Context()
	v, err := h.GetFeature(ctx, nvme.FeatKeepAliveTimer, 0, 0, 0, nil)
	check(t, err)
	if d := time.Duration(v) * time.Millisecond; d != time.Minute {
		t.Errorf("KATO %v", d)
	}
	id := make([]byte, 16)
	_, err = h.GetFeature(ctx, nvme.FeatHostIdentifier, 0, 0, 1, id)
	check(t, err)
	if got := nvme.FormatUUID([16]byte(id)); got != hostID {
		t.Errorf("host identifier %s", got)
	}
	v, err = h.GetFeature(ctx, nvme.FeatVolatileWriteCache, 0, 0, 0, nil)
	if err != nil || v&1 == 0 {
		t.Errorf("volatile write cache: %d, %v", v, err)
	}
	_, err = h.SetFeature(ctx, nvme.FeatKeepAliveTimer, false, 0, 90_000, nil)
	check(t, err)
	if v, err = h.GetFeature(ctx, nvme.FeatKeepAliveTimer, 0, 0, 0, nil); v != 90_000 || err != nil {
		t.Errorf("KATO after Set Features: %d ms, %v", v, err)
	}
	if _, err = h.GetFeature(ctx, nvme.FeatLBARangeType, 0, 1, 0, nil); !errors.Is(err, nvme.StatusInvalidField) {
		t.Errorf("a feature that is not there: %v", err)
	}
	// A namespace that the target protects tells so, and refuses to be written.
	ns := h.namespace(t, 7)
	b := make([]byte, 4096)
	_, err = h.SetFeature(ctx, nvme.FeatWriteProtection, false, 7, nvme.WriteProtectOn, nil)
	check(t, err)
	h.rec.waitChanged(t, 7)
	if ns.Identify().NSATTR&nvme.NSATTRWriteProtected == 0 {
		t.Error("the namespace does not say that it is write protected")
	}
	if _, err := ns.WriteAt(b, 0); !errors.Is(err, nvme.StatusNamespaceWriteProtected) {
		t.Errorf("write to a protected namespace: %v", err)
	}
	_, err = ns.ReadAt(b, 0)
	check(t, err)
	_, err = h.SetFeature(ctx, nvme.FeatWriteProtection, false, 7, nvme.WriteProtectNone, nil)
	check(t, err)
	h.rec.waitChanged(t, 7)
	_, err = ns.WriteAt(b, 0)
	check(t, err)
}

// testLogs reads log pages, some of which must have changed by what came before.
func testLogs(t *testing.T, h *host) {
	ctx := t.Context()
	page := make([]byte, 512)
	smart := func() (s nvme.SMARTLog) {
		check(t, h.LogPage(ctx, nvme.LogSMART, page, nvme.LogOptions{NSID: nvme.NSIDAll}))
		check(t, s.UnmarshalBinary(page))
		return s
	}
	before := smart()
	b := make([]byte, 8<<10)
	const n = 20
	for i := range int64(n) {
		_, err := h.namespace(t, 1).WriteAt(b, i*8<<10)
		check(t, err)
		_, err = h.namespace(t, 1).ReadAt(b, i*8<<10)
		check(t, err)
	}
	after := smart()
	if r, w := after.HostReads.Lo-before.HostReads.Lo, after.HostWrites.Lo-before.HostWrites.Lo; r < n || w < n {
		t.Errorf("SMART log: %d reads and %d writes more, want %d", r, w, n)
	}
	ns := h.namespace(t, 1)
	const bad = 0x123456789a
	if _, err := ns.Passthrough(ctx, &nvme.Command{Opcode: nvme.OpRead, CDW10: bad & 0xffffffff, CDW11: bad >> 32}, b[:512]); err == nil {
		t.Error("a read far beyond the end was fine")
	}
	entries := make([]byte, 64*(int(h.Identify().ELPE)+1))
	check(t, h.LogPage(ctx, nvme.LogError, entries, nvme.LogOptions{NSID: nvme.NSIDAll}))
	list, err := nvme.ParseErrorLog(entries)
	check(t, err)
	if i := slices.IndexFunc(list, func(e nvme.ErrorLogEntry) bool { return e.LBA == bad }); i < 0 {
		t.Errorf("the error log does not have the failed read: %+v", list[:min(len(list), 4)])
	} else if e := list[i]; !errors.Is(e.Status(), nvme.StatusInternalError) || e.NSID != 1 || e.SQID == 0 {
		t.Errorf("error log entry %+v", e)
	}
	if s := smart(); s.ErrorLogEntries.Lo <= before.ErrorLogEntries.Lo {
		t.Errorf("SMART log: %d error log entries", s.ErrorLogEntries.Lo)
	}
	effects := make([]byte, 4096)
	check(t, h.LogPage(ctx, nvme.LogCommandEffects, effects, nvme.LogOptions{}))
	var eff nvme.CommandEffectsLog
	check(t, eff.UnmarshalBinary(effects))
	if eff.IO[nvme.OpRead] == 0 || eff.IO[nvme.OpCompare] != 0 || eff.Admin[nvme.AdminKeepAlive] == 0 {
		t.Errorf("effects of Read %v, Compare %v, Keep Alive %v", eff.IO[nvme.OpRead], eff.IO[nvme.OpCompare], eff.Admin[nvme.AdminKeepAlive])
	}
	ana, err := h.ReadANALog(ctx)
	check(t, err)
	if len(ana.Groups) == 0 || ana.Groups[0].ID != 1 || ana.Groups[0].State != nvme.ANAOptimized || !slices.Equal(ana.Groups[0].NSIDs, []uint32{1, 7, 1000}) {
		t.Errorf("ANA log %+v", ana)
	}
	if err := h.LogPage(ctx, nvme.LogTelemetryHost, page, nvme.LogOptions{}); !errors.Is(err, nvme.StatusInvalidField) {
		t.Errorf("a log page that is not there: %v", err)
	}
}
