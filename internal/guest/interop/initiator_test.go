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
	quiet(t, k.g)
	idle := k.idle(t)
	// What the target's transport says of commands that are not executed.
	const failed = `^nvmet_tcp: failed cmd`
	// A host asks for a subsystem that the port does not have.
	const invalid = `^nvmet: connect request for invalid subsystem `
	lossy := []string{
		// Both sides have closed a connection at the same time.
		`^nvmet_tcp: queue \d+ unhandled state 11$`,
		// Commands that were on their way when the host closed the connection
		// and disabled the controller.
		`while CC.EN == 0 on qid`, failed,
		// A connection was given up before its first PDU was read.
		`received icreq pdu in state 3$`, `failed to allocate queue, error -107$`,
		`keep-alive timer .* expired`, `fatal error occurred`,
	}
	for _, c := range []struct {
		name  string
		run   func(*testing.T, *kernelTarget)
		allow []string // what the kernel may say
	}{
		{"Discovery", testDiscovery, nil},
		{"Refused", testRefused, append(lossy, invalid, `unsupported hpda 7$`)},
		{"Identify", testIdentify, []string{failed}},
		{"Data", testData, nil},
		{"Limits", testLimits, nil},
		{"Overdue", testOverdue, lossy},
		{"Ops", testOps, []string{`^I/O error, dev qpoll\d+, sector 80 `}},
		{"ANA", testANA, []string{failed}},
		{"Namespaces", testNamespaces, []string{failed}},
		{"Restart", testRestart, append(lossy, invalid)},
		{"FastFail", testFastFail, lossy},
		{"CtrlLoss", testCtrlLoss, lossy},
		{"KeepAlive", idle, nil},
		{"Stall", testStall, lossy},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer quiet(t, k.g, c.allow...)
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
