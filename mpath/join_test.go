package mpath

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/mpath/policy"
	"github.com/qpoll/qpoll/nvme"
)

// Namespaces join by what identifies them, whatever their NSID.
func TestJoinByIdentity(t *testing.T) {
	other := newMedia(testBlocks)
	two := nvme.NamespaceIdentity{UUID: [16]byte{2}}
	w := newWorld(t, 2, nil, func(i int, k *fakeController) {
		if i == 0 {
			k.setNS(2, &fakeNS{media: other, ids: two, nmic: nvme.NMICShared})
			return
		}
		k.setNS(9, k.ns[1])
		k.setNS(1, &fakeNS{media: other, ids: two, nmic: nvme.NMICShared})
	})
	heads := w.s.Heads()
	if len(heads) != 2 || len(heads[0].Paths()) != 2 || len(heads[1].Paths()) != 2 {
		t.Fatal(heads)
	}
	if h, err := w.s.Head(two); err != nil || h != heads[1] {
		t.Error(h, err)
	}
	if _, err := w.s.Head(nvme.NamespaceIdentity{UUID: [16]byte{3}}); !errors.Is(err, ErrNamespace) {
		t.Error(err)
	}
	must(t, w.h.SetPolicy("round-robin"))
	for i := range byte(8) {
		if st := w.write(5, i+1).wait(); !st.OK() || w.media.at(5) != i+1 || other.at(5) != 0 {
			t.Fatal(st, w.media.at(5), other.at(5))
		}
	}
}

// conflicts collects what is told of conflicts.
func conflicts(cfg *Config) chan error {
	ch := make(chan error, 16)
	cfg.Events = &Events{Conflict: func(_ *Subsystem, _ *nvme.Controller, _ uint32, err error) { ch <- err }}
	return ch
}

// Two heads with one identity, or half of it, are told apart or refused.
func TestIdentityConflicts(t *testing.T) {
	ids := func(nguid, uuid byte) (id nvme.NamespaceIdentity) {
		id.NGUID[0], id.UUID[0] = nguid, uuid
		return id
	}
	for name, c := range map[string]struct {
		first, second fakeNS
		want          string // "": they join
		heads         int
	}{
		"same":             {fakeNS{ids: ids(1, 1), nmic: 1}, fakeNS{ids: ids(1, 0), nmic: 1}, "", 1},
		"other":            {fakeNS{ids: ids(1, 1), nmic: 1}, fakeNS{ids: ids(2, 2), nmic: 1}, "", 2},
		"half the same":    {fakeNS{ids: ids(1, 1), nmic: 1}, fakeNS{ids: ids(1, 2), nmic: 1}, "shares an identifier", 1},
		"both private":     {fakeNS{ids: ids(1, 1)}, fakeNS{ids: ids(1, 1)}, "private", 1},
		"one private":      {fakeNS{ids: ids(1, 1), nmic: 1}, fakeNS{ids: ids(1, 1)}, "private", 1},
		"no identity":      {fakeNS{nmic: 1}, fakeNS{nmic: 1}, "", 2},
		"other block size": {fakeNS{ids: ids(1, 1), nmic: 1}, fakeNS{ids: ids(1, 1), nmic: 1, flbas: 12}, "blocks of", 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick()
			told := conflicts(cfg)
			w := newWorld(t, 2, cfg, func(i int, k *fakeController) {
				ns := c.first
				if i == 1 {
					ns = c.second
				}
				ns.media = newMedia(testBlocks)
				k.setNS(1, &ns)
			})
			if n := len(w.s.Heads()); n != c.heads {
				t.Errorf("%d heads", n)
			}
			if c.want == "" {
				if n := len(w.h.Paths()); n != 3-c.heads {
					t.Errorf("%d paths", n)
				}
				return
			}
			if err := <-told; !errors.Is(err, ErrIdentity) || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			if n := len(w.h.Paths()); n != 1 {
				t.Errorf("%d paths", n)
			}
		})
	}
}

// Controllers that do not belong to the subsystem are refused.
func TestSubsystemConflicts(t *testing.T) {
	for name, change := range map[string]func(k *fakeController){
		"another NQN":     func(k *fakeController) { k.id.SetSubsystemNQN("nqn.2014-08.org.example:other") },
		"same CNTLID":     func(k *fakeController) { k.id.CNTLID = 1 },
		"one at the most": func(k *fakeController) { k.id.CMIC = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil, func(_ int, k *fakeController) {
				if name == "one at the most" {
					k.id.CMIC = 0
				}
			})
			k := newController(2, w.media)
			change(k)
			if _, err := w.s.AddTransport(within(t), k); !errors.Is(err, ErrSubsystem) {
				t.Error(err)
			}
			if st := w.write(0, 1).wait(); !st.OK() || len(w.s.Controllers()) != 1 {
				t.Error(st)
			}
		})
	}
}

// Controllers come and go under load.
func TestJoinAndLeave(t *testing.T) {
	cfg := quick()
	cfg.Policy = "round-robin"
	w := newWorld(t, 1, cfg)
	for round := range 4 {
		k := newController(uint16(10+round), w.media)
		c, err := w.s.AddTransport(within(t), k)
		must(t, err)
		eventually(t, "I/O by the new path", func() bool {
			w.write(1, 1).wait()
			for _, p := range w.h.Paths() {
				if p.Controller() == c && p.Stats().Completed > 0 {
					return true
				}
			}
			return false
		})
		w.on(func() { k.hook = func(*nvme.Request) (nvme.Status, bool) { return 0, false } })
		ops := []*op{w.write(2, 2), w.write(3, 3)}
		eventually(t, "write", func() (is bool) { w.on(func() { is = len(k.heldOn()) == 1 }); return is })
		must(t, w.s.Remove(within(t), c))
		for _, o := range ops {
			if st := o.wait(); !st.OK() {
				t.Error(st)
			}
		}
		if n := len(w.h.Paths()); n != 1 {
			t.Errorf("%d paths", n)
		}
		if err := w.s.Remove(within(t), c); !errors.Is(err, ErrSubsystem) {
			t.Error(err)
		}
	}
	w.idle(w.ch)
}

// Wire case 22: a namespace is gone, or replaced by another under its NSID, after
// a reconnect. No I/O reaches the other one.
func TestWireCase22OtherNamespace(t *testing.T) {
	for _, how := range []string{"gone", "replaced"} {
		t.Run(how, func(t *testing.T) {
			cfg := quick()
			cfg.Policy = "round-robin"
			w := newWorld(t, 2, cfg)
			wrong := newMedia(testBlocks)
			if how == "gone" {
				w.k[1].setNS(1, nil)
			} else {
				w.k[1].setNS(1, &fakeNS{media: wrong, ids: nvme.NamespaceIdentity{NGUID: [16]byte{9}}, nmic: nvme.NMICShared})
			}
			w.k[1].cut(errCut)
			for i := range byte(16) {
				if st := w.write(2, i+1).wait(); !st.OK() || w.media.at(2) != i+1 {
					t.Fatal(st, w.media.at(2))
				}
			}
			eventually(t, "removal of the path", func() bool { return len(w.h.Paths()) == 1 })
			eventually(t, "controller", func() bool { return w.c[1].State() == nvme.StateLive })
			for i := range byte(16) {
				if st := w.write(2, i+1).wait(); !st.OK() || w.media.at(2) != i+1 || wrong.at(2) != 0 {
					t.Fatal(st, w.media.at(2), wrong.at(2))
				}
			}
			if how == "replaced" {
				eventually(t, "head of the other one", func() bool { return len(w.s.Heads()) == 2 })
			}
			w.k[1].setNS(1, w.k[0].ns[1])
			w.k[1].event(nvme.NoticeNamespaceAttributeChanged, nvme.LogChangedNamespaces)
			eventually(t, "return of the path", func() bool { return len(w.h.Paths()) == 2 })
			w.idle(w.ch)
		})
	}
}

// Wire case 24: a name that is not one of a policy is an error.
func TestWireCase24PolicyNames(t *testing.T) {
	w := newWorld(t, 1, nil)
	before := w.h.Policy()
	for _, name := range []string{"", "Round-Robin", "round robin", "fastest", "\x00"} {
		if err := w.h.SetPolicy(name); !errors.Is(err, policy.ErrUnknown) || !strings.Contains(err.Error(), "queue-depth") {
			t.Errorf("%q: %v", name, err)
		}
		if name == "" {
			continue // which is the default to a Config
		}
		if _, err := New(&Config{Policy: name}); !errors.Is(err, policy.ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if w.h.Policy() != before {
		t.Error("changed to", w.h.Policy())
	}
	for _, n := range []int{-1, 101, 1 << 40} {
		if err := w.pathOf(0).SetRelativeThroughput(n); !errors.Is(err, policy.ErrWeight) {
			t.Errorf("%d: %v", n, err)
		}
	}
	for _, cfg := range []Config{{Channels: -1}, {Channels: policy.MaxCores + 1}, {Trackers: -1}, {Trackers: maxTrackers + 1},
		{PolicyConfig: policy.Config{LatencyShift: 17}}} {
		if _, err := New(&cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	r := newRig(t, 2)
	for name, addresses := range map[string][]string{
		"none":            nil,
		"no address":      {"nonsense"},
		"ns is no number": {r.address(0) + " ns:x"},
		"two namespaces":  {r.address(0) + " ns:1", r.address(1) + " ns:2"},
		"no such ns":      {r.address(0) + " ns:7"},
		"no transport":    {"trtype:pigeon traddr:roof"},
	} {
		if h, err := OpenConfig(within(t), quick(), addresses...); err == nil {
			t.Errorf("%s: opened", name)
			must(t, h.Close(within(t)))
		}
	}
	// One that is not there is tried again.
	r.ports[1].Pause()
	h := r.open(quick())
	if n := len(h.Paths()); n != 1 {
		t.Errorf("%d paths", n)
	}
	must(t, r.ports[1].Resume())
	eventually(t, "second path", func() bool { return len(h.Paths()) == 2 })
}

func TestOpenDiscovery(t *testing.T) {
	r := newRig(t, 2)
	a := r.ports[0].Addr()
	addr := "trtype:tcp traddr:" + a.Addr().String() + " trsvcid:" + strings.TrimPrefix(a.String(), a.Addr().String()+":")
	h, err := OpenDiscovery(within(t), quick(), addr, testNQN)
	must(t, err)
	if n := len(h.Paths()); n != 2 || h.Subsystem().NQN() != testNQN {
		t.Errorf("%d paths to %s", n, h.Subsystem().NQN())
	}
	must(t, h.Close(within(t)))
	must(t, h.Close(within(t)))
	if _, err := OpenDiscovery(within(t), quick(), addr, "nqn.2014-08.org.example:none"); !errors.Is(err, ErrSubsystem) {
		t.Error(err)
	}
	if _, err := h.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNoPath) {
		t.Error(err)
	}
	if _, err := h.Channel(context.Background(), r.p, nvme.QueueConfig{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
