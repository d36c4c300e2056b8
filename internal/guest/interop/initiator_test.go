//go:build guest

package interop

import (
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
)

// TestInitiator runs our initiator against the kernel's target.
func TestInitiator(t *testing.T) {
	k := &kernelTarget{g: guest.Boot(t, guest.Config{Modules: nvmet.Modules, MemoryMiB: 768})}
	var err error
	k.tgt, err = nvmet.Start(t.Context(), k.g)
	check(t, err)
	quiet(t, k.g, expected{})
	idle := k.idle(t)
	var (
		// The target's transport tells of commands that it does not execute.
		failed = expected{notes: []string{`^nvmet_tcp: failed cmd`}}
		lossy  = expected{loss: true}
		// A host asks for a subsystem that the port does not have.
		absent = expected{loss: true, notes: []string{`^nvmet: connect request for invalid subsystem `, `unsupported hpda 7$`}}
	)
	for _, c := range []struct {
		name     string
		run      func(*testing.T, *kernelTarget)
		expected expected
	}{
		{"Discovery", testDiscovery, expected{}},
		{"Refused", testRefused, absent},
		{"Identify", testIdentify, failed},
		{"Data", testData, expected{}},
		{"Limits", testLimits, expected{}},
		{"Overdue", testOverdue, lossy},
		{"Ops", testOps, expected{notes: []string{`^I/O error, dev qpoll\d+, sector 80 `}}},
		{"ANA", testANA, failed},
		{"Namespaces", testNamespaces, expected{loss: true}},
		{"Restart", testRestart, absent},
		{"Cuts", testCuts, lossy},
		{"FastFail", testFastFail, lossy},
		{"CtrlLoss", testCtrlLoss, lossy},
		{"KeepAlive", idle, expected{}},
		{"Stall", testStall, lossy},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer quiet(t, k.g, c.expected)
			c.run(t, k)
		})
	}
}

// idle connects with a short keep-alive timeout, and returns a test that this
// connection has lived all the while, without a single command.
func (k *kernelTarget) idle(t *testing.T) func(*testing.T, *kernelTarget) {
	const kato = 4 * time.Second
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 4}})
	h := e.connect(t, 0, nvme.Config{KeepAlive: kato})
	h.namespace(t, 1)
	since := time.Now()
	return func(t *testing.T, _ *kernelTarget) {
		time.Sleep(time.Until(since.Add(3 * kato)))
		if n := h.rec.count(nvme.StateLive); n != 1 || h.State() != nvme.StateLive {
			t.Errorf("live %d times, now %v", n, h.State())
			h.rec.dump(t, "idle")
		}
		_, err := h.namespace(t, 1).ReadAt(make([]byte, 512), 0)
		check(t, err)
	}
}
