package nvme

import (
	"context"
	"errors"
	"testing"
	"time"
)

// blocksAtOnce limits what one command moves.
func (r *rig) blocksAtOnce(n uint32) {
	g := *r.ns.geo.Load()
	g.oneCommand = n
	r.ns.geo.Store(&g)
}

// replace puts another namespace in the place of the one that is there.
func (d *fakeDisk) replace() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uuid[0]++
}

// Split transfers that still wait for trackers when the controller comes back
// with another namespace send nothing to it.
func TestSplitNamespaceReplaced(t *testing.T) {
	d := newFakeDisk(512, 4096)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	r.blocksAtOnce(8)
	q := r.queue(4)
	silent := true
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 || !silent }
	c := newCollect()
	ranges := []DSMRange{{LBA: 0, Length: 1}, {LBA: 8, Length: 1}}
	r.on(func() {
		for _, err := range []error{
			q.Write(make([]byte, 512*512), 0, 512, collectDone, c),  // takes all trackers
			q.Write(make([]byte, 64*512), 1024, 64, collectDone, c), // has none yet
			q.Deallocate(ranges, collectDone, c),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	r.on(func() { silent = false })
	d.pieces()
	d.replace()
	d.queues[0].cut(errCut)
	for range 3 {
		if st := c.wait(t); st.Code() != StatusInvalidNamespace {
			t.Fatal(st)
		}
	}
	if p := d.pieces(); len(p) != 0 {
		t.Fatalf("sent to another namespace: %v", p)
	}
	r.on(func() {
		if q.qp.inflight != 0 || q.Room() != 3 || q.qp.stalled.head != nil || len(q.qp.freeOps) != len(q.qp.ops) {
			t.Error("something leaked")
		}
	})
	c.none(t)
}

// A split transfer under way stops when the namespace is found replaced.
func TestSplitNamespaceLeaves(t *testing.T) {
	for name, submit := range map[string]func(q *NamespaceQueue, c *collect) error{
		"write": func(q *NamespaceQueue, c *collect) error {
			return q.Write(make([]byte, 512*512), 0, 512, collectDone, c)
		},
		"deallocate": func(q *NamespaceQueue, c *collect) error {
			return q.Deallocate([]DSMRange{{LBA: 0, Length: 1}, {LBA: 8, Length: 1}, {LBA: 16, Length: 1}}, collectDone, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDisk(512, 4096)
			d.nvm = &IdentifyControllerNVM{DMRL: 1}
			r := newRig(t, d, nil)
			r.blocksAtOnce(8)
			q := r.queue(3)
			d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
				if fq.qp.ID() != 0 {
					r.ns.leave()
				}
				return 0, true
			}
			c := newCollect()
			r.on(func() {
				if err := submit(q, c); err != nil {
					t.Error(err)
				}
			})
			if st := c.wait(t); st.Code() != StatusInvalidNamespace {
				t.Fatal(st)
			}
			if p := d.pieces(); len(p) > 2 {
				t.Fatalf("%d commands", len(p))
			}
			c.none(t)
		})
	}
}

// A namespace that leaves under a blocking call is not taken for one that ends
// where the call begins.
func TestLeftIsNotEOF(t *testing.T) {
	r := newRig(t, newFakeDisk(512, 64), nil)
	g := *r.ns.geo.Load()
	g.blocks, g.gone = 0, true
	r.ns.geo.Store(&g) // the first half of leave
	if _, err := r.ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrNoNamespace) {
		t.Error(err)
	}
	if _, err := r.ns.WriteAt(make([]byte, 512), 0); !errors.Is(err, ErrNoNamespace) {
		t.Error(err)
	}
	if err := r.ns.Deallocate(context.Background(), 0, 512); !errors.Is(err, ErrNoNamespace) {
		t.Error(err)
	}
	if err := r.ns.Flush(context.Background()); !errors.Is(err, ErrNoNamespace) {
		t.Error(err)
	}
}

// A raw command that waits for the reconnect does not go to another namespace.
func TestPassthroughNamespaceReplaced(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	if err := r.read(context.Background(), 0)(); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	d.mu.Lock()
	d.connecting = func(context.Context, *QueuePair) error { <-hold; return nil }
	d.mu.Unlock()
	d.queue(0).cut(errCut)
	eventually(t, "connecting", func() bool { return r.c.State() == StateConnecting })
	d.replace()
	call := outcome(func() error {
		_, err := r.ns.Passthrough(context.Background(), &Command{Opcode: OpFlush}, nil)
		return err
	})
	time.Sleep(10 * time.Millisecond) // most likely it waits by then
	d.pieces()
	close(hold)
	if err := await(t, call); !errors.Is(err, ErrNoNamespace) {
		t.Error(err)
	}
	if p := d.pieces(); len(p) != 0 {
		t.Error("sent", p)
	}
}
