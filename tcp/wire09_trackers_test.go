package tcp_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// gate lets a controller hold back what it does with I/O.
type gate struct {
	shut atomic.Bool
	seen atomic.Int32 // commands that were held back
}

func (g *gate) override(r *tcptest.Request) bool {
	if r.Queue == 0 || r.Cmd.Opcode == nvme.OpFabrics || !g.shut.Load() {
		return false
	}
	g.seen.Add(1)
	return true
}

// lose breaks off all connections and keeps the host from coming back.
func (f *fixture) lose() {
	f.t.Helper()
	f.srv.Unlisten()
	f.srv.Drop()
	// The queues are down, and take no command to the controller any more.
	eventually(f.t, "the loss to be noticed", func() bool { return f.c.State() == nvme.StateConnecting })
}

// comeBack lets the host reconnect.
func (f *fixture) comeBack() {
	f.t.Helper()
	if err := f.srv.Listen(); err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, "the controller to be live", func() bool { return f.c.State() == nvme.StateLive })
}

// A queue that is full of commands, lost, and filled again while it reconnects
// has a tracker left for its own Connect.
func TestWireCase09FullQueueReconnects(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 3, 4, 32} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			k, _ := disk(1024)
			var g gate
			g.shut.Store(true)
			k.Override = g.override
			f := open(t, k, quickReconnect)
			q := f.queue(nvme.QueueConfig{Size: size})
			var bufs [][]byte
			fill := func() (n int) {
				f.onCore(func() {
					for {
						o := newOp("read %d", len(f.ops))
						buf := make([]byte, 512)
						err := q.Read(buf, uint64(len(f.ops)), 1, opDone, o)
						if errors.Is(err, nvme.ErrQueueFull) {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						f.ops, bufs = append(f.ops, o), append(bufs, buf)
						n++
					}
				})
				return n
			}
			if n := fill(); n != size-1 {
				t.Errorf("%d commands fit into a queue of %d", n, size)
			}
			eventually(t, "the controller to have the commands", func() bool { return int(g.seen.Load()) == size-1 })
			f.lose()
			if n := fill(); n != 0 {
				t.Errorf("%d commands more fit while reconnecting", n)
			}
			g.shut.Store(false)
			f.comeBack()
			for _, o := range f.ops {
				if st := o.wait(t); !st.OK() {
					t.Errorf("%s: %v", o.name, st)
				}
			}
		})
	}
}

// The same with a queue that was empty when it was lost, and with transfers
// that are split into more commands than there are trackers.
func TestWireCase09FillWhileReconnecting(t *testing.T) {
	t.Parallel()
	k, ns := disk(4096)
	k.Identify = func(id *nvme.IdentifyController) { id.MDTS = 1 } // 8 KiB
	data := pattern(make([]byte, 1<<20), 1)
	if _, err := ns.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	f := open(t, k, quickReconnect)
	q := f.queue(nvme.QueueConfig{Size: 4})
	f.lose()
	bufs := [][]byte{make([]byte, 1<<20), make([]byte, 512<<10), make([]byte, 512)}
	for i, buf := range bufs {
		f.submit(fmt.Sprintf("read %d", i), func(o *op) error {
			err := q.Read(buf, 0, uint32(len(buf)/512), opDone, o)
			if i == 2 && errors.Is(err, nvme.ErrQueueFull) {
				o.complete(nvme.StatusSuccess, 0) // the large ones have all trackers
				copy(buf, data)
				return nil
			}
			return err
		})
	}
	f.comeBack()
	for i, o := range f.ops {
		if st := o.wait(t); !st.OK() {
			t.Errorf("%s: %v", o.name, st)
		}
		if string(bufs[i]) != string(data[:len(bufs[i])]) {
			t.Errorf("%s: data differs", o.name)
		}
	}
}

// An admin queue that users have filled still identifies the controller when
// it reconnects.
func TestWireCase09AdminQueue(t *testing.T) {
	t.Parallel()
	const size, n = 32, 64 // more commands than there is room for
	k, _ := disk(64)
	var hold atomic.Bool
	var held atomic.Int32
	hold.Store(true)
	k.Override = func(r *tcptest.Request) bool {
		if r.Cmd.Opcode != nvme.AdminSecurityReceive {
			return false
		}
		if hold.Load() {
			held.Add(1)
			return true
		}
		r.Complete(nvme.StatusSuccess, 0)
		return true
	}
	f := open(t, k, quickReconnect, func(cfg *nvme.Config) { cfg.AdminQueueSize = size })
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := f.c.Admin(f.ctx(), &nvme.Command{Opcode: nvme.AdminSecurityReceive}, nil)
			errs <- err
		}()
	}
	eventually(t, "the admin queue to be full", func() bool { return held.Load() >= 4 })
	hold.Store(false)
	f.lose()
	f.comeBack()
	aborted := 0
	for range n {
		// Those that the controller had are not sent twice; the others wait.
		err := <-errs
		if errors.Is(err, nvme.StatusCommandAbortedByHost) {
			aborted++
		} else if err != nil {
			t.Error(err)
		}
	}
	if aborted >= size {
		t.Errorf("%d commands were aborted, %d fit into the queue", aborted, size-1)
	}
}
