package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

func capability(change func(f *nvme.CAPFields)) nvme.CAP {
	f := nvme.CAPFields{MQES: 127, CQR: true, TO: time.Second, CSS: nvme.CAPCSSNVM}
	change(&f)
	return f.CAP()
}

// CAP.TO of 0 and of 127.5 s, with controllers that become ready at once,
// after a while, and never.
func TestWireCase16ReadyTimeout(t *testing.T) {
	t.Parallel()
	for _, to := range []time.Duration{0, 500 * time.Millisecond, 127500 * time.Millisecond} {
		capp := capability(func(f *nvme.CAPFields) { f.TO = to })
		if capp.TO() != to {
			t.Fatalf("CAP.TO %v", capp.TO())
		}
		for _, reads := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("TO=%v, ready after %d", to, reads), func(t *testing.T) {
				k, _ := disk(64)
				k.CAP = capp
				k.CSTS = func(cc nvme.CC, n int) nvme.CSTS {
					return nvme.CSTSFields{RDY: cc.EN() && n >= reads, SHST: shutdown(cc)}.CSTS()
				}
				wantWorks(t, open(t, k))
			})
		}
		t.Run(fmt.Sprintf("TO=%v, never ready", to), func(t *testing.T) {
			k, _ := disk(64)
			k.CAP = capp
			k.CSTS = func(nvme.CC, int) nvme.CSTS { return 0 }
			f := setup(t, k, nil)
			// What the controller asks for counts, even beyond ConnectTimeout;
			// the caller's context ends it in any case.
			ctx, cancel := context.WithTimeout(f.ctx(), 20*time.Second)
			if to > 10*time.Second {
				ctx, cancel = context.WithTimeout(f.ctx(), 200*time.Millisecond)
			}
			defer cancel()
			_, err := nvme.Open(ctx, f.srv.Address(subNQN), &nvme.Config{
				Poller: f.p, HostNQN: hostNQN, KeepAlive: -1, ConnectTimeout: 100 * time.Millisecond,
			})
			wantTimeout(t, err)
			if to < 10*time.Second && !strings.Contains(err.Error(), "CSTS.RDY") {
				t.Errorf("%q does not say what was waited for", err)
			}
		})
	}
}

func shutdown(cc nvme.CC) uint8 {
	if cc.SHN() != nvme.CCSHNNone {
		return nvme.CSTSSHSTComplete
	}
	return nvme.CSTSSHSTNormal
}

// CSTS.CFS while the controller is being enabled, at once or after a while,
// with or without CSTS.RDY; and a status of all ones, as of a device that is
// gone.
func TestWireCase16FatalStatus(t *testing.T) {
	t.Parallel()
	for _, csts := range []nvme.CSTS{2, 3, nvme.CSTSGone} {
		for _, reads := range []int{0, 1, 4} {
			t.Run(fmt.Sprintf("%v after %d", csts, reads), func(t *testing.T) {
				k, _ := disk(64)
				k.CSTS = func(cc nvme.CC, n int) nvme.CSTS {
					if cc.EN() && n >= reads {
						return csts
					}
					return 0
				}
				f := setup(t, k, nil)
				if err := f.connect(); !errors.Is(err, nvme.ErrFatal) {
					t.Errorf("%v, want ErrFatal", err)
				}
			})
		}
	}
}

// The same when the controller is reconnected to: it is tried again, and the
// commands wait for it.
func TestWireCase16FatalStatusOnReconnect(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var fatal atomic.Int32
	k.CSTS = func(cc nvme.CC, _ int) nvme.CSTS {
		if cc.EN() && cc.SHN() == 0 && fatal.Add(-1) >= 0 {
			return 2
		}
		return nvme.CSTSFields{RDY: cc.EN(), SHST: shutdown(cc)}.CSTS()
	}
	attempts := make(chan error, 16)
	f := open(t, k, quickReconnect, func(cfg *nvme.Config) {
		cfg.Events = &nvme.Events{Reconnect: func(_ *nvme.Controller, _ int, err error) { attempts <- err }}
	})
	q := f.queue(nvme.QueueConfig{})
	fatal.Store(3)
	f.lose()
	o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
	f.comeBack()
	fatals := 0
	for err := range attempts {
		if err == nil {
			break
		}
		if errors.Is(err, nvme.ErrFatal) {
			fatals++
		}
	}
	if fatals != 3 {
		t.Errorf("%d attempts ended with ErrFatal, want 3", fatals)
	}
	if st := o.wait(t); !st.OK() {
		t.Error(st)
	}
}

// The controller is found enabled: it is disabled first, and waited for.
func TestWireCase16FoundEnabled(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		t.Run(fmt.Sprintf("stuck=%v", stuck), func(t *testing.T) {
			k, _ := disk(64)
			k.CAP = capability(func(f *nvme.CAPFields) { f.TO = 0 })
			var writes []nvme.CC
			first := true
			k.Override = func(r *tcptest.Request) bool {
				if r.Cmd.Opcode != nvme.OpFabrics {
					return false
				}
				if p, err := nvme.ParsePropertySet(&r.Cmd); err == nil && p.Offset == nvme.RegCC {
					writes = append(writes, nvme.CC(p.Value))
					first = false
				}
				if p, err := nvme.ParsePropertyGet(&r.Cmd); err == nil && p.Offset == nvme.RegCC && first {
					r.Complete(nvme.StatusSuccess, uint64(nvme.CCFields{EN: true, IOSQES: 6, IOCQES: 4}.CC()))
					return true
				}
				return false
			}
			k.CSTS = func(cc nvme.CC, n int) nvme.CSTS {
				return nvme.CSTSFields{RDY: stuck || cc.EN() || n < 2, SHST: shutdown(cc)}.CSTS()
			}
			f := setup(t, k, nil)
			err := f.connect(func(cfg *nvme.Config) {
				if stuck {
					cfg.ConnectTimeout = 100 * time.Millisecond
				}
			})
			if stuck {
				wantTimeout(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f.end()
			if len(writes) < 2 || writes[0].EN() || !writes[1].EN() || writes[1].IOSQES() != 6 || writes[1].IOCQES() != 4 {
				t.Errorf("CC was written %+v", writes)
			}
		})
	}
}

// The smallest queue there is: two entries, one command in flight.
func TestWireCase16MQES1(t *testing.T) {
	t.Parallel()
	k, _ := disk(1024)
	k.CAP = capability(func(f *nvme.CAPFields) { f.MQES = 1 })
	k.Identify = func(id *nvme.IdentifyController) { id.MDTS = 1 }
	f := open(t, k)
	for _, size := range []int{0, 2, 64} {
		q := f.queue(nvme.QueueConfig{Size: size})
		if n := q.QueuePair().Size(); n != 2 {
			t.Errorf("a queue of %d entries was opened, want 2", n)
		}
		var second error
		o := f.submit("read", func(o *op) error {
			err := q.Read(make([]byte, 512), 0, 1, opDone, o)
			second = q.Read(make([]byte, 512), 0, 1, opDone, newOp("second"))
			return err
		})
		if !errors.Is(second, nvme.ErrQueueFull) {
			t.Errorf("a second command: %v, want ErrQueueFull", second)
		}
		if st := o.wait(t); !st.OK() {
			t.Error(st)
		}
		large := f.submit("split read", func(o *op) error { return q.Read(make([]byte, 256<<10), 0, 512, opDone, o) })
		if st := large.wait(t); !st.OK() {
			t.Error(st)
		}
	}
	wantWorks(t, f)
}

func TestWireCase16MQES0(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	k.CAP = capability(func(f *nvme.CAPFields) { f.MQES = 0 })
	f := setup(t, k, nil)
	if err := f.connect(); !errors.Is(err, nvme.ErrProtocol) || !strings.Contains(err.Error(), "MQES") {
		t.Errorf("%v, want ErrProtocol about MQES", err)
	}
}

// Memory pages larger than the host's.
func TestWireCase16MPSMIN(t *testing.T) {
	t.Parallel()
	for _, mpsmin := range []uint8{1, 4, 15} {
		k, _ := disk(64)
		k.CAP = capability(func(f *nvme.CAPFields) { f.MPSMIN, f.MPSMAX = mpsmin, 15 })
		f := setup(t, k, nil)
		if err := f.connect(); !errors.Is(err, nvme.ErrUnsupported) || !strings.Contains(err.Error(), "MPSMIN") {
			t.Errorf("MPSMIN %d: %v, want ErrUnsupported about MPSMIN", mpsmin, err)
		}
	}
}

// The doorbell stride means nothing over fabrics.
func TestWireCase16DSTRD(t *testing.T) {
	t.Parallel()
	for _, dstrd := range []uint8{1, 15} {
		k, _ := disk(64)
		k.CAP = capability(func(f *nvme.CAPFields) { f.DSTRD = dstrd })
		wantWorks(t, open(t, k))
	}
}

// Properties that the controller refuses: the error says which.
func TestWireCase16PropertyRejected(t *testing.T) {
	t.Parallel()
	for offset, name := range map[uint32]string{nvme.RegCAP: "CAP", nvme.RegVS: "VS", nvme.RegCC: "CC", nvme.RegCSTS: "CSTS"} {
		t.Run(name, func(t *testing.T) {
			k, _ := disk(64)
			k.Override = func(r *tcptest.Request) bool {
				if p, err := nvme.ParsePropertyGet(&r.Cmd); err != nil || p.Offset != offset {
					return false
				}
				r.Complete(nvme.StatusInvalidField|nvme.StatusDNR, 0)
				return true
			}
			f := setup(t, k, nil)
			if err := f.connect(); !errors.Is(err, nvme.StatusInvalidField) || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want the status, and %q", err, name)
			}
		})
	}
}
