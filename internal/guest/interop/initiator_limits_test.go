//go:build guest

package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
)

// testLimits connects to ports that allow little, or much.
func testLimits(t *testing.T, k *kernelTarget) {
	e := k.export(t, []nvmet.PortConfig{
		{InlineData: 1024, MaxQueueSize: 16},
		{InlineData: 64 << 10, MaxQueueSize: 512},
	}, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.File{MiB: 8}},
		nvmet.NamespaceConfig{NSID: 2, Backend: nvmet.Loop{MiB: 8}})
	check(t, e.sub.SetAttr(t.Context(), "attr_qid_max", "3"))
	p := newPoller(t, "p")
	models := []*pattern.Model{share(1, 8<<20, 4096)[0], share(1, 8<<20, 512)[0]}
	for i, want := range []int{16, 300} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			h := e.connect(t, i, nvme.Config{
				IOQueues: 10, QueueSize: 300,
				Transport: tcp.Config{SQFlowControl: i == 1, HeaderDigest: true},
			})
			if n := h.IOQueues(); n != 3 {
				t.Errorf("%d I/O queues were granted, want 3", n)
			}
			for nsid := range uint32(2) {
				q := h.queue(t, nsid+1, p)
				if n := q.QueuePair().Size(); n != want {
					t.Errorf("queue of %d entries, want %d", n, want)
				}
				m := models[nsid]
				one := uint64(4096 / m.Size)
				l := startLoad(t, q, m, shape{blocks: []uint64{one, one * 3, one * 16}, depth: 32, ops: 300, vector: true}, 5)
				l.wait(t)
				readBack(t, h.namespace(t, nsid+1), m)
			}
			if _, err := h.OpenQueue(t.Context(), p, nvme.QueueConfig{}); !errors.Is(err, nvme.ErrUnsupported) {
				t.Errorf("a fourth queue, with that of the blocking calls: %v", err)
			}
		})
	}
}

// testOverdue has a namespace that is slower than the initiator has patience.
func testOverdue(t *testing.T, k *kernelTarget) {
	e := k.export(t, onePort,
		nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 4, Delay: time.Second}},
		nvmet.NamespaceConfig{NSID: 2, Backend: nvmet.NullBlk{MiB: 4}})
	b := make([]byte, 4096)
	t.Run("Retries", func(t *testing.T) {
		h := e.connect(t, 0, nvme.Config{IOTimeout: 200 * time.Millisecond, Retries: 1})
		_, err := h.namespace(t, 1).ReadAt(b, 0)
		if !errors.Is(err, nvme.StatusCommandAbortedByHost) {
			t.Errorf("read: %v", err)
		}
		// The command was aborted and then cost a reset, each time.
		h.rec.waitCount(t, nvme.StateLive, 3)
		h.rec.mu.Lock()
		if got := fmt.Sprint(h.rec.actions); got != "[abort reset abort reset]" {
			t.Errorf("actions %s", got)
		}
		h.rec.mu.Unlock()
		_, err = h.namespace(t, 2).ReadAt(b, 0)
		check(t, err)
	})
	t.Run("Context", func(t *testing.T) {
		h := e.connect(t, 0, nvme.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		// The kernel does not abort; b is the caller's again when it has answered.
		n, err := h.namespace(t, 1).ReadAtContext(ctx, b, 0)
		if err != nil && !errors.Is(err, nvme.ErrTimeout) || err == nil && n != len(b) {
			t.Errorf("read with a short deadline: %d, %v", n, err)
		}
		if c := h.rec.count(nvme.StateLive); c != 1 {
			t.Errorf("live %d times", c)
		}
	})
}
