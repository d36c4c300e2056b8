package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// identify lets f answer Identify commands; it returns false for those that it
// leaves to the disk.
func (d *fakeDisk) identify(f func(cns CNS, cmd *Command, buf []byte) (Status, bool)) {
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() != 0 || rq.Cmd.Opcode != AdminIdentify {
			return 0, true
		}
		st, mine := f(CNS(rq.Cmd.CDW10), &rq.Cmd, rq.Data.Buf)
		if !mine {
			return 0, true
		}
		fq.cpl.StatusPhase = uint16(st) << 1
		fq.qp.Complete(rq, &fq.cpl)
		return 0, false
	}
}

// Controllers before 1.2 look at one or two bits of CNS only: what they answer
// to newer values is something else.
func TestOldControllers(t *testing.T) {
	for _, tc := range []struct {
		vs   VS
		mask CNS
		want []uint32
	}{{MakeVS(1, 0, 0), 1, []uint32{1, 3}}, {MakeVS(1, 1, 0), 3, []uint32{1, 3}}} {
		d := newFakeDisk(512, 1024)
		d.version = tc.vs
		d.ns.NGUID[0] = 7
		d.id.NN = 4
		var asked []CNS
		d.identify(func(cns CNS, cmd *Command, buf []byte) (Status, bool) {
			asked = append(asked, cns)
			clear(buf)
			switch cns & tc.mask {
			case CNSNamespace:
				if cmd.NSID == 4 {
					return StatusInvalidNamespace | StatusDNR, true // some do
				}
				if cmd.NSID&1 == 1 {
					b, _ := d.ns.AppendBinary(nil)
					copy(buf, b)
				}
			case CNSController:
				b, _ := d.id.AppendBinary(nil)
				copy(buf, b)
				for i := 3072; i < 4096; i++ {
					buf[i] = 0xff
				}
			case CNSActiveNamespaces:
				n := 0
				for _, nsid := range tc.want {
					if nsid > cmd.NSID {
						binary.LittleEndian.PutUint32(buf[n:], nsid)
						n += 4
					}
				}
			default:
				return StatusInvalidField | StatusDNR, true
			}
			return 0, true
		})
		r := newRig(t, d, nil)
		list, err := r.c.ActiveNamespaces(context.Background())
		if err != nil || !slices.Equal(list, tc.want) {
			t.Errorf("%v: %v, %v", tc.vs, list, err)
		}
		if id := r.ns.IDs(); id.NGUID[0] != 7 || id.UUID != [16]byte{} || id.CSI != CSINVM {
			t.Errorf("%v: %+v", tc.vs, id)
		}
		if g := r.ns.geo.Load(); g.verify != maxNLB || g.dsmRanges != MaxDSMRanges || g.dsmRange != 0xffffffff {
			t.Errorf("%v: %+v", tc.vs, g)
		}
		for _, cns := range asked {
			if cns > tc.mask || tc.mask == 1 && cns > 1 {
				t.Errorf("%v was asked for CNS %d", tc.vs, cns)
			}
		}
	}
}

// A controller that should have a list of namespaces, but rejects it.
func TestNoNamespaceList(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.identify(func(cns CNS, cmd *Command, buf []byte) (Status, bool) {
		return StatusInvalidField | StatusDNR, cns == CNSActiveNamespaces
	})
	r := newRig(t, d, nil)
	if list, err := r.c.ActiveNamespaces(context.Background()); err != nil || !slices.Equal(list, []uint32{1}) {
		t.Fatal(list, err)
	}
}

// Lists of namespaces that are not as they should be.
func TestHostileNamespaceList(t *testing.T) {
	for name, tc := range map[string]struct {
		next func(last uint32) uint32 // what follows last in the list
		want error
	}{
		"descending": {func(last uint32) uint32 { return 5 - min(last, 4) }, ErrProtocol},
		"repeating":  {func(last uint32) uint32 { return 1 }, ErrProtocol},
		"endless":    {func(last uint32) uint32 { return last + 1 }, ErrProtocol},
		"broadcast":  {func(last uint32) uint32 { return 0xffffffff }, ErrProtocol},
		"the last":   {func(last uint32) uint32 { return min(max(last+1, 0xfffffffe-2000), 0xfffffffe) }, nil},
	} {
		d := newFakeDisk(512, 64)
		d.id.NN = 0xffffffff
		d.identify(func(cns CNS, cmd *Command, buf []byte) (Status, bool) {
			if cns != CNSActiveNamespaces {
				return 0, false
			}
			last := cmd.NSID
			for i := 0; i < len(buf) && (last != 0xfffffffe || name != "the last"); i += 4 {
				last = tc.next(last)
				binary.LittleEndian.PutUint32(buf[i:], last)
			}
			return 0, true
		})
		r := newRig(t, d, nil)
		list, err := r.c.ActiveNamespaces(context.Background())
		if !errors.Is(err, tc.want) || err == nil && len(list) != 2001 {
			t.Errorf("%s: %d, %v", name, len(list), err)
		}
	}
}

// What Identify Namespace may say, and what becomes of it.
func TestNamespaceGeometry(t *testing.T) {
	type change func(d *fakeDisk)
	for name, tc := range map[string]struct {
		change change
		want   error
		check  func(ns *Namespace) bool
	}{
		"plain": {func(d *fakeDisk) {}, nil, func(ns *Namespace) bool {
			return ns.BlockSize() == 512 && ns.MaxBlocks() == 1<<16 && !ns.ReadOnly()
		}},
		"no size":            {func(d *fakeDisk) { d.ns.NSZE = 0 }, ErrNoNamespace, nil},
		"largest NSZE":       {func(d *fakeDisk) { d.ns.NSZE = ^uint64(0) }, ErrProtocol, nil},
		"one block too many": {func(d *fakeDisk) { d.ns.NSZE = 1 << 54 }, ErrProtocol, nil},
		"as large as it gets": {func(d *fakeDisk) { d.ns.NSZE = 1<<54 - 1 }, nil, func(ns *Namespace) bool {
			return ns.Size() == 1<<63-512
		}},
		"LBADS 0":                {func(d *fakeDisk) { d.ns.LBAF[0].LBADS = 0 }, ErrProtocol, nil},
		"LBADS 8":                {func(d *fakeDisk) { d.ns.LBAF[0].LBADS = 8 }, ErrProtocol, nil},
		"LBADS 255":              {func(d *fakeDisk) { d.ns.LBAF[0].LBADS = 255 }, ErrProtocol, nil},
		"format out of range":    {func(d *fakeDisk) { d.ns.FLBAS = 5 }, ErrProtocol, nil},
		"block beyond MDTS":      {func(d *fakeDisk) { d.id.MDTS, d.ns.LBAF[0].LBADS = 1, 14 }, ErrProtocol, nil},
		"MDTS one block":         {func(d *fakeDisk) { d.id.MDTS, d.ns.LBAF[0].LBADS = 1, 13 }, nil, func(ns *Namespace) bool { return ns.MaxBlocks() == 1 }},
		"MDTS 19":                {func(d *fakeDisk) { d.id.MDTS = 19 }, nil, func(ns *Namespace) bool { return ns.MaxBlocks() == 1<<16 }},
		"MDTS 255":               {func(d *fakeDisk) { d.id.MDTS = 255 }, nil, func(ns *Namespace) bool { return ns.MaxBlocks() == 1<<16 }},
		"MDTS 20":                {func(d *fakeDisk) { d.id.MDTS = 20 }, nil, func(ns *Namespace) bool { return ns.MaxBlocks() == 1<<16 }},
		"separate metadata":      {func(d *fakeDisk) { d.ns.LBAF[0].MS = 8 }, ErrUnsupported, nil},
		"separate, memory based": {func(d *fakeDisk) { d.local, d.ns.LBAF[0].MS = true, 8 }, ErrUnsupported, nil},
		"extended metadata": {func(d *fakeDisk) { d.ns.LBAF[0].MS, d.ns.FLBAS, d.id.MDTS = 8, 1<<4, 1 }, nil, func(ns *Namespace) bool {
			return ns.BlockSize() == 520 && ns.MaxBlocks() == 8192/520
		}},
		"read only": {func(d *fakeDisk) { d.ns.NSATTR = NSATTRWriteProtected }, nil, func(ns *Namespace) bool { return ns.ReadOnly() }},
		"NOIOB 1":   {func(d *fakeDisk) { d.ns.NOIOB = 1 }, nil, func(ns *Namespace) bool { return ns.geo.Load().boundary == 1 }},
		"limits, no ONCS": {func(d *fakeDisk) {
			d.id.ONCS, d.nvm = 0, &IdentifyControllerNVM{WZSL: 1, VSL: 2, DMRL: 3}
		}, nil, func(ns *Namespace) bool {
			g := ns.geo.Load()
			return g.zeroes == 16 && g.verify == 32 && g.deallocate && g.dsmRanges == 3 && !g.compare
		}},
		"largest limits": {func(d *fakeDisk) {
			d.nvm = &IdentifyControllerNVM{WZSL: 255, VSL: 40, DMRL: 255, DMRSL: 0xffffffff, DMSL: ^uint64(0)}
		}, nil, func(ns *Namespace) bool {
			g := ns.geo.Load()
			return g.zeroes == maxNLB && g.verify == maxNLB && g.dsmRanges == 255
		}},
		"limits below a block": {func(d *fakeDisk) {
			d.ns.LBAF[0].LBADS, d.nvm = 16, &IdentifyControllerNVM{WZSL: 1, VSL: 1}
		}, nil, func(ns *Namespace) bool {
			g := ns.geo.Load()
			return g.zeroes == 1 && g.verify == 1
		}},
		"malformed descriptors": {func(d *fakeDisk) {
			d.identify(func(cns CNS, _ *Command, buf []byte) (Status, bool) {
				copy(buf, []byte{3, 200})
				return 0, cns == CNSNamespaceDescriptors
			})
		}, ErrProtocol, nil},
		"no descriptors, vendor status": {func(d *fakeDisk) {
			d.identify(func(cns CNS, _ *Command, buf []byte) (Status, bool) {
				return MakeStatus(SCTVendor, 1) | StatusDNR, cns == CNSNamespaceDescriptors
			})
		}, nil, func(ns *Namespace) bool { return ns.ident.IsZero() }},
		"descriptors fail now": {func(d *fakeDisk) {
			d.identify(func(cns CNS, _ *Command, buf []byte) (Status, bool) {
				return StatusInternalError, cns == CNSNamespaceDescriptors
			})
		}, StatusInternalError, nil},
		"limits fail now": {func(d *fakeDisk) {
			d.identify(func(cns CNS, _ *Command, buf []byte) (Status, bool) {
				return StatusInternalError, cns == CNSControllerCS
			})
		}, StatusInternalError, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDisk(512, 64)
			tc.change(d)
			p := startPoller(t)
			ctx := context.Background()
			c, err := NewController(ctx, d, &Config{Poller: p})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(ctx)
			ns, err := c.Namespace(ctx, 1)
			if !errors.Is(err, tc.want) {
				t.Fatal(err)
			}
			var oe *OpError
			if err != nil && (!errors.As(err, &oe) || oe.Op != "identify namespace 1") {
				t.Fatal(err)
			}
			if err == nil && !tc.check(ns) {
				t.Fatalf("%+v, %+v", ns.geo.Load(), ns.ident)
			}
		})
	}
}

// namespaceEvent reports a change of namespace 1 and waits until it was dealt
// with.
func (r *rig) namespaceEvent() {
	r.t.Helper()
	r.on(func() {
		if !r.d.queue(0).event(AsyncEvent(uint32(AsyncNotice) | uint32(LogChangedNamespaces)<<16)) {
			r.t.Error("no event request")
		}
	})
	eventually(r.t, "the event is dealt with", func() (ok bool) {
		r.on(func() { ok = r.d.queue(0).requests() == min(int(r.d.id.AERL)+1, maxAsyncRequests) })
		return ok
	})
}

// A namespace that is formatted anew is not used under the old handle: what it
// says about block sizes would not hold any more.
func TestNamespaceReformatted(t *testing.T) {
	for name, format := range map[string]func(d *fakeDisk){
		"block size": func(d *fakeDisk) { d.ns.LBAF[0].LBADS = 12 },
		"metadata":   func(d *fakeDisk) { d.ns.LBAF[0].MS, d.ns.FLBAS = 8, 1<<4 },
	} {
		for _, live := range []bool{true, false} {
			for _, unnamed := range []bool{true, false} {
				d := eventDisk()
				if unnamed {
					d.uuid = [16]byte{}
				}
				r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
				q := r.queue(8)
				c := newCollect()
				if live {
					d.mu.Lock()
					format(d)
					d.mu.Unlock()
					r.namespaceEvent()
				} else {
					m := d.mute()
					r.on(func() {
						if err := q.Write(make([]byte, 1024), 8, 2, collectDone, c); err != nil {
							t.Error(err)
						}
					})
					r.on(func() { d.pieces() })
					d.mu.Lock()
					format(d)
					d.mu.Unlock()
					m.on.Store(false)
					if err := r.c.Reset(context.Background()); err != nil {
						t.Fatal(err)
					}
					if st := c.wait(t); st.Code() != StatusInvalidNamespace {
						t.Fatal(name, st)
					}
					if p := d.pieces(); len(p) != 0 {
						t.Fatalf("%s: %v with the old format", name, p)
					}
				}
				if !r.ns.Gone() {
					t.Fatal(name, "still there")
				}
				if _, err := r.ns.ReadAt(make([]byte, 4096), 0); !errors.Is(err, ErrNoNamespace) {
					t.Fatal(name, err)
				}
				ns, err := r.c.Namespace(context.Background(), 1)
				if err != nil || ns == r.ns || ns.BlockSize() == 512 {
					t.Fatal(name, ns.BlockSize(), err)
				}
			}
		}
	}
}

// A namespace that grows or shrinks keeps its handle.
func TestNamespaceResized(t *testing.T) {
	d := eventDisk()
	r := newRig(t, d, nil)
	for _, blocks := range []uint64{32, 64, 1} {
		d.mu.Lock()
		d.ns.NSZE = blocks
		d.mu.Unlock()
		if blocks == 64 {
			if err := r.c.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
		} else {
			r.namespaceEvent()
		}
		if r.ns.Gone() || r.ns.Blocks() != blocks || r.ns.Size() != int64(blocks)*512 {
			t.Fatal(r.ns.Gone(), r.ns.Blocks())
		}
	}
}

// A namespace in use that cannot be identified any more is lost, the controller
// is not; one that cannot be identified just now costs another attempt.
func TestReconnectBadNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(cns CNS, tries int32, buf []byte) (Status, bool)
		gone   bool
	}{
		"do not retry": {func(cns CNS, _ int32, _ []byte) (Status, bool) {
			return StatusInternalError | StatusDNR, cns == CNSNamespace
		}, true},
		"malformed": {func(cns CNS, _ int32, buf []byte) (Status, bool) {
			for i := range buf {
				buf[i] = 0xff
			}
			return 0, cns == CNSNamespace
		}, true},
		"not ready": {func(cns CNS, tries int32, _ []byte) (Status, bool) {
			return StatusNamespaceNotReady, cns == CNSNamespace && tries < 3
		}, false},
		"descriptors not ready": {func(cns CNS, tries int32, _ []byte) (Status, bool) {
			return StatusInternalError, cns == CNSNamespaceDescriptors && tries < 3
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDisk(512, 64)
			r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
			var tries atomic.Int32
			r.on(func() {
				d.identify(func(cns CNS, _ *Command, buf []byte) (Status, bool) {
					if cns == CNSController {
						tries.Add(1)
					}
					return tc.answer(cns, tries.Load(), buf)
				})
			})
			if err := r.c.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
			if r.ns.Gone() != tc.gone {
				t.Fatal(r.ns.Gone())
			}
			if tc.gone != (tries.Load() == 1) {
				t.Fatal(tries.Load(), "attempts")
			}
		})
	}
}

// A namespace that is identified while it is replaced is the new one, however
// the two events fall.
func TestNamespaceReplacedWhileIdentified(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	r.c.mu.Lock()
	delete(r.c.ns, 1) // as if it had never been asked for
	r.c.mu.Unlock()
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.on(func() {
		d.identify(func(cns CNS, cmd *Command, buf []byte) (Status, bool) {
			if cns == CNSControllerCS {
				// The last of an identification: now the controller is lost,
				// and another namespace stands in the place.
				once.Do(func() {
					d.replace()
					go func() {
						if err := r.c.Reset(context.Background()); err != nil {
							t.Error(err)
						}
						close(held)
					}()
				})
			}
			return 0, false
		})
	})
	close(hold)
	ns, err := r.c.Namespace(context.Background(), 1)
	<-held
	if err != nil && !errors.Is(err, StatusCommandAbortedByHost) {
		t.Fatal(err)
	}
	if err == nil && !ns.Gone() && ns.IDs().UUID[0] != 2 {
		t.Fatal("the namespace of before", ns.IDs())
	}
	ns, err = r.c.Namespace(context.Background(), 1)
	if err != nil || ns.IDs().UUID[0] != 2 {
		t.Fatal(ns, err)
	}
}
