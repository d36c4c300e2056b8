package mpath

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// Whatever happens, in any order, all I/O completes once and nothing stays in
// flight by any account.
func TestAccounting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := quick()
		cfg.Controller.ReconnectDelay = time.Millisecond
		n := rapid.IntRange(1, 3).Draw(rt, "controllers")
		t.Run(fmt.Sprint(n), func(t *testing.T) { accounting(t, rt, n, cfg) })
	})
}

func accounting(t *testing.T, rt *rapid.T, n int, cfg *Config) {
	w := newWorld(t, n, cfg, func(_ int, k *fakeController) { k.withANA(1) })
	var ops []*op
	which := rapid.IntRange(0, n-1)
	held := make([]bool, n)
	for range rapid.IntRange(1, 30).Draw(rt, "steps") {
		switch rapid.SampledFrom([]string{"io", "io", "io", "hold", "cut", "ana", "policy", "weight", "status", "reset"}).Draw(rt, "step") {
		case "io":
			for range rapid.IntRange(1, 8).Draw(rt, "depth") {
				if rapid.Bool().Draw(rt, "write") {
					ops = append(ops, w.write(uint64(len(ops))%testBlocks, 1))
				} else {
					o, _ := w.read(uint64(len(ops)) % testBlocks)
					ops = append(ops, o)
				}
			}
		case "hold":
			i := which.Draw(rt, "controller")
			held[i] = !held[i]
			w.hold(i, held[i])
		case "cut":
			w.k[which.Draw(rt, "controller")].cut(errCut)
		case "ana":
			s := rapid.SampledFrom([]nvme.ANAState{nvme.ANAOptimized, nvme.ANANonOptimized, nvme.ANAInaccessible}).Draw(rt, "state")
			w.k[which.Draw(rt, "controller")].setANA(1, s, rapid.Bool().Draw(rt, "event"))
		case "policy":
			must(t, w.h.SetPolicy(rapid.SampledFrom(policy.Names()).Draw(rt, "policy")))
		case "weight":
			for _, p := range w.h.Paths() {
				must(t, p.SetRelativeThroughput(rapid.IntRange(0, policy.MaxWeight).Draw(rt, "weight")))
			}
		case "status":
			i := which.Draw(rt, "controller")
			st := rapid.SampledFrom([]nvme.Status{nvme.StatusANAInaccessible, nvme.StatusInternalPathError, nvme.StatusWriteFault}).Draw(rt, "status")
			w.on(func() {
				left := 3
				w.k[i].hook = func(*nvme.Request) (nvme.Status, bool) {
					if left--; left >= 0 {
						return st, true
					}
					return 0, true
				}
			})
		case "reset":
			i := which.Draw(rt, "controller")
			go func() { _ = w.c[i].Reset(within(t)) }()
		}
	}
	for i, k := range w.k {
		w.hold(i, false)
		k.setANA(1, nvme.ANAOptimized, true)
		k.cut(errCut)
	}
	for _, o := range ops {
		o.wait()
	}
	w.idle(w.ch)
}
