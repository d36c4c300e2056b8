//go:build guest

package interop

import (
	"errors"
	"slices"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
)

// testNamespaces has namespaces come, grow, shrink and go while connected.
func testNamespaces(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 4}})
	h := e.connect(t, 0, nvme.Config{IOQueues: 3})
	b := make([]byte, 4096)
	n := e.add(t, nvmet.NamespaceConfig{NSID: 5, Backend: nvmet.File{MiB: 4}})
	h.rec.waitChanged(t, 5)
	list, err := h.ActiveNamespaces(ctx)
	check(t, err)
	if !slices.Equal(list, []uint32{1, 5}) {
		t.Errorf("active namespaces %v", list)
	}
	ns := h.namespace(t, 5)
	for _, mib := range []int64{9, 2} {
		check(t, nvmet.ResizeFile(ctx, k.g, n.Path(), int(mib)))
		check(t, n.Revalidate(ctx))
		h.rec.waitChanged(t, 5)
		if ns.Size() != mib<<20 {
			t.Errorf("namespace of %d MiB has size %d", mib, ns.Size())
		}
		_, err = ns.WriteAt(b, mib<<20-4096)
		check(t, err)
		if _, err := ns.WriteAt(b, mib<<20); !errors.Is(err, nvme.ErrOutOfRange) {
			t.Errorf("write beyond the end: %v", err)
		}
	}
	q := h.queue(t, 5, newPoller(t, "p"))
	check(t, n.Disable(ctx))
	h.rec.waitChanged(t, 5)
	if !ns.Gone() {
		t.Error("the namespace is not gone")
	}
	if _, err := ns.ReadAt(b, 0); !errors.Is(err, nvme.ErrNoNamespace) {
		t.Errorf("read: %v", err)
	}
	if _, err := h.Namespace(ctx, 5); !errors.Is(err, nvme.ErrNoNamespace) {
		t.Errorf("a namespace that is gone: %v", err)
	}
	check(t, q.QueuePair().Poller().Call(ctx, func() { err = q.Write(b, 0, 1, nil, nil) }))
	if !errors.Is(err, nvme.ErrNoNamespace) {
		t.Errorf("polled write: %v", err)
	}
	// The same one again.
	check(t, n.Enable(ctx))
	h.rec.waitChanged(t, 5)
	again := h.namespace(t, 5)
	_, err = again.ReadAt(b, 0)
	check(t, err)
	t.Run("Replaced", func(t *testing.T) { testReplaced(t, k) })
	t.Run("ReplacedWhileAway", func(t *testing.T) { testReplacedAway(t, k) })
}

// replaced is a namespace that another takes the place of, under load.
type replaced struct {
	e    *exported
	h    *host
	old  *nvmet.Namespace
	load *load
	m    *pattern.Model
}

func newReplaced(t *testing.T, k *kernelTarget) *replaced {
	r := &replaced{e: k.export(t, onePort, nvmet.NamespaceConfig{NSID: 3, Backend: nvmet.NullBlk{MiB: 4}, UUID: uuid1})}
	r.old = r.e.ns[0]
	r.h = r.e.connect(t, 0, nvme.Config{IOQueues: 2})
	q := r.h.queue(t, 3, newPoller(t, "p"))
	r.m = pattern.NewModel(0, q.Blocks(), q.BlockSize())
	r.load = startLoad(t, q, r.m, shape{blocks: []uint64{1, 8, 40}, depth: 8, tolerate: func(err error) bool {
		// What is sent to a namespace that is disabled, but there, fails with
		// Internal Path Error.
		return errors.Is(err, nvme.StatusInvalidNamespace) || errors.Is(err, nvme.ErrNoNamespace) ||
			errors.Is(err, nvme.StatusInternalPathError)
	}}, 7)
	r.load.progress(t, 100)
	return r
}

// replace puts another namespace in the place of the one that was disabled.
func (r *replaced) replace(t *testing.T) *nvmet.Namespace {
	return r.e.add(t, nvmet.NamespaceConfig{NSID: 3, Backend: nvmet.NullBlk{MiB: 4}, UUID: uuid2})
}

// untouched fails the test if a namespace has anything but zeros, or if the old
// one lacks what was acknowledged; it ends the load.
func (r *replaced) untouched(t *testing.T, n *nvmet.Namespace) {
	t.Helper()
	r.load.failures(t, 20)
	r.load.stop()
	r.load.wait(t)
	r.e.k.g.Shell(t, "dd if="+n.Path()+" bs=1M count=4 2>/dev/null | cmp -n 4194304 - /dev/zero")
	ns := r.h.namespace(t, 3)
	ids := ns.IDs()
	if got := nvme.FormatUUID(ids.UUID); got != uuid2 {
		t.Errorf("namespace 3 is now %s", got)
	}
	_, err := ns.WriteAt(make([]byte, 4096), 0)
	check(t, err)
}

func testReplaced(t *testing.T, k *kernelTarget) {
	r := newReplaced(t, k)
	check(t, r.old.Disable(t.Context()))
	r.h.rec.waitChanged(t, 3)
	check(t, r.old.Remove(t.Context()))
	r.e.ns = r.e.ns[:0]
	n := r.replace(t)
	r.h.rec.waitChanged(t, 3)
	r.untouched(t, n)
}

// testReplacedAway replaces the namespace while the connection is down: what was
// in flight, or came meanwhile, must not be sent to the new one.
func testReplacedAway(t *testing.T, k *kernelTarget) {
	r := newReplaced(t, k)
	check(t, r.e.ports[0].Stop(t.Context()))
	r.h.rec.waitCount(t, nvme.StateConnecting, 1)
	check(t, r.old.Remove(t.Context()))
	r.e.ns = r.e.ns[:0]
	n := r.replace(t)
	check(t, r.e.ports[0].Start(t.Context()))
	r.h.rec.waitCount(t, nvme.StateLive, 2)
	r.untouched(t, n)
}
