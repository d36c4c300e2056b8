package tcp_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// changes collects what Events.NamespacesChanged is told.
type changes chan []uint32

func (ch changes) config(cfg *nvme.Config) {
	cfg.Events = &nvme.Events{NamespacesChanged: func(_ *nvme.Controller, list []uint32) { ch <- list }}
}

// After each change the changed namespace list is read, so that the controller
// reports the next one.
func TestWireCase14EveryChangeIsReported(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	k.AddNamespace(9, tcptest.NewNamespace(64, 512))
	var reads atomic.Int32
	k.Override = func(r *tcptest.Request) bool {
		if r.Queue == 0 && r.Cmd.Opcode == nvme.AdminGetLogPage && nvme.LogID(r.Cmd.CDW10) == nvme.LogChangedNamespaces {
			reads.Add(1)
			if r.Cmd.CDW10>>15&1 != 0 {
				t.Error("the log was read with Retain Asynchronous Event")
			}
		}
		return false
	}
	ch := make(changes, 16)
	f := open(t, k, ch.config)
	if v, ok := k.Feature(nvme.FeatAsyncEventConfiguration); !ok || v&uint32(nvme.AsyncConfigNamespaceAttribute) == 0 {
		t.Errorf("events configured: %#x, %v", v, ok)
	}
	for i := range 12 { // more than there are requests for events
		nsid := uint32(1 + 8*(i%2))
		k.NamespaceChanged(nsid)
		if got := <-ch; !slices.Equal(got, []uint32{nsid}) {
			t.Fatalf("change %d: %v, want %d", i, got, nsid)
		}
	}
	if n := reads.Load(); n != 12 {
		t.Errorf("the log was read %d times for 12 changes", n)
	}
	eventually(t, "the requests for events", func() bool { return k.EventsArmed() == 4 })
	wantWorks(t, f)
}

// What has changed is looked at: a namespace that grew, went away, or is
// another one now.
func TestWireCase14Changes(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	first := tcptest.NewNamespace(64, 512)
	first.SetIDs(nvme.NamespaceIdentity{NGUID: [16]byte{7}})
	k.AddNamespace(2, first)
	ch := make(changes, 16)
	f := open(t, k, ch.config)
	ns := f.namespace(2)

	grown := tcptest.NewNamespace(128, 512)
	grown.SetIDs(nvme.NamespaceIdentity{NGUID: [16]byte{7}})
	k.AddNamespace(2, grown)
	k.NamespaceChanged(2)
	<-ch
	if ns.Gone() || ns.Blocks() != 128 {
		t.Errorf("gone %v, %d blocks, want 128", ns.Gone(), ns.Blocks())
	}
	if _, err := ns.ReadAt(make([]byte, 512), 100*512); err != nil {
		t.Errorf("read of the new part: %v", err)
	}

	other := tcptest.NewNamespace(128, 512)
	k.AddNamespace(2, other)
	k.NamespaceChanged(2)
	<-ch
	if !ns.Gone() {
		t.Error("another namespace under the same identifier was taken for the old one")
	}
	if _, err := ns.WriteAt(pattern(make([]byte, 512), 1), 0); !errors.Is(err, nvme.ErrNoNamespace) {
		t.Errorf("write to a namespace that was replaced: %v, want ErrNoNamespace", err)
	}
	again := f.namespace(2)
	if again == ns || again.IDs().NGUID == ns.IDs().NGUID {
		t.Error("the handle of the new namespace is the old one")
	}
	if _, err := again.ReadAt(make([]byte, 512), 0); err != nil {
		t.Error(err)
	}

	k.RemoveNamespace(2)
	k.NamespaceChanged(2)
	<-ch
	if _, err := again.ReadAt(make([]byte, 512), 0); !errors.Is(err, nvme.ErrNoNamespace) {
		t.Errorf("read of a namespace that went away: %v, want ErrNoNamespace", err)
	}
	if _, err := f.c.Namespace(f.ctx(), 2); !errors.Is(err, nvme.ErrNoNamespace) {
		t.Errorf("%v, want ErrNoNamespace", err)
	}
	wantWorks(t, f)
}

// A list that says that there is more than it holds stands for all namespaces.
func TestWireCase14Overflow(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	k.AddNamespace(2, tcptest.NewNamespace(64, 512))
	k.Override = func(r *tcptest.Request) bool {
		if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminGetLogPage || nvme.LogID(r.Cmd.CDW10) != nvme.LogChangedNamespaces {
			return false
		}
		b := make([]byte, r.Len())
		binary.LittleEndian.PutUint32(b, 0xffffffff)
		r.SendData(b, 0)
		r.Complete(nvme.StatusSuccess, 0)
		return true
	}
	ch := make(changes, 16)
	f := open(t, k, ch.config)
	ns := f.namespace(2)
	k.RemoveNamespace(2)
	k.NamespaceChanged(1)
	if got := <-ch; got != nil {
		t.Errorf("changed: %v, want nil for all", got)
	}
	if !ns.Gone() {
		t.Error("a namespace that went away was not noticed")
	}
}

// Events whose log page cannot be read do not stop the events after them.
func TestWireCase14LogPageRejected(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	k.Override = func(r *tcptest.Request) bool {
		if r.Queue != 0 || r.Cmd.Opcode != nvme.AdminGetLogPage {
			return false
		}
		r.Complete(nvme.StatusInvalidLogPage|nvme.StatusDNR, 0)
		return true
	}
	got := make(chan nvme.AsyncEvent, 16)
	open(t, k, func(cfg *nvme.Config) {
		cfg.Events = &nvme.Events{Async: func(_ *nvme.Controller, e nvme.AsyncEvent) { got <- e }}
	})
	want := []nvme.AsyncEvent{
		nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeNamespaceAttributeChanged, nvme.LogChangedNamespaces, 0),
		nvme.MakeAsyncEvent(nvme.AsyncSMART, nvme.SMARTTemperature, nvme.LogSMART, 0),
		nvme.MakeAsyncEvent(nvme.AsyncError, nvme.ErrorTransientInternal, nvme.LogError, 0),
		nvme.MakeAsyncEvent(nvme.AsyncVendor, 0xff, 0xc5, 0xdeadbeef),
		nvme.MakeAsyncEvent(5, 0xff, 0xff, 0xffffffff), // reserved
	}
	for range 3 {
		for _, e := range want {
			k.Event(e)
		}
		for _, e := range want {
			if g := <-got; g != e {
				t.Errorf("event %v, want %v", g, e)
			}
		}
	}
}
