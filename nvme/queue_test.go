package nvme

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// pieces returns start and length in blocks of the recorded I/O commands.
func (d *fakeDisk) pieces() (list [][2]uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.commands {
		list = append(list, [2]uint64{uint64(c.CDW10) | uint64(c.CDW11)<<32, uint64(c.CDW12&0xffff) + 1})
	}
	d.commands = nil
	return list
}

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		mdts        uint8 // 4 KiB << mdts
		noiob       uint16
		stripe      uint32 // bytes
		lba, blocks uint64
		want        [][2]uint64
	}{
		{0, 0, 0, 3, 100, [][2]uint64{{3, 100}}},
		{1, 0, 0, 0, 16, [][2]uint64{{0, 16}}},
		{1, 0, 0, 0, 17, [][2]uint64{{0, 16}, {16, 1}}},
		{1, 0, 0, 5, 40, [][2]uint64{{5, 16}, {21, 16}, {37, 8}}},
		{0, 32, 0, 30, 4, [][2]uint64{{30, 2}, {32, 2}}},
		{0, 32, 0, 32, 32, [][2]uint64{{32, 32}}},
		{1, 24, 0, 20, 30, [][2]uint64{{20, 4}, {24, 16}, {40, 8}, {48, 2}}},
		{0, 0, 16 << 10, 30, 4, [][2]uint64{{30, 2}, {32, 2}}},
		{1, 0, 12 << 10, 20, 30, [][2]uint64{{20, 4}, {24, 16}, {40, 8}, {48, 2}}},
		{0, 3, 16 << 10, 30, 4, [][2]uint64{{30, 3}, {33, 1}}},
		{0, 64, 16 << 10, 30, 4, [][2]uint64{{30, 4}}},
		{0, 0, 511, 30, 4, [][2]uint64{{30, 4}}},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			d := newFakeDisk(512, 4096)
			d.id.MDTS, d.ns.NOIOB, d.stripe = tc.mdts, tc.noiob, tc.stripe
			rand.New(rand.NewSource(1)).Read(d.disk)
			r := newRig(t, d, nil)
			q := r.queue(4) // fewer trackers than pieces
			want := bytes.Clone(d.disk[tc.lba*512 : (tc.lba+tc.blocks)*512])
			got := make([]byte, len(want))
			c := newCollect()
			r.on(func() {
				if err := q.Read(got, tc.lba, uint32(tc.blocks), collectDone, c); err != nil {
					t.Error(err)
				}
			})
			if st := c.wait(t); st != 0 {
				t.Fatal(st)
			}
			if p := d.pieces(); !slices.Equal(p, tc.want) {
				t.Fatalf("pieces %v, want %v", p, tc.want)
			}
			if !bytes.Equal(got, want) {
				t.Fatal("data differs")
			}
			c.none(t)
		})
	}
}

// Vectored transfers of elements of any length, split at any place.
func TestSplitVectored(t *testing.T) {
	d := newFakeDisk(512, 1024)
	d.id.MDTS = 1
	r := newRig(t, d, nil)
	q := r.queue(5)
	rnd := rand.New(rand.NewSource(7))
	for round := range 50 {
		blocks := 1 + rnd.Intn(100)
		lba := uint64(rnd.Intn(1024 - blocks))
		data := make([]byte, blocks*512)
		rnd.Read(data)
		var vec [][]byte
		for rest := bytes.Clone(data); len(rest) > 0; {
			n := min(rnd.Intn(900), len(rest)) // 0, too
			vec = append(vec, rest[:n:n])
			rest = rest[n:]
		}
		c := newCollect()
		var back [][]byte
		for _, v := range vec {
			back = append(back, make([]byte, len(v)))
		}
		r.on(func() {
			if err := q.WriteV(vec, lba, uint32(blocks), collectDone, c); err != nil {
				t.Error(err)
			}
		})
		if st := c.wait(t); st != 0 {
			t.Fatal(round, st)
		}
		if !bytes.Equal(d.disk[lba*512:(lba+uint64(blocks))*512], data) {
			t.Fatal(round, "disk differs")
		}
		r.on(func() {
			if err := q.ReadV(back, lba, uint32(blocks), collectDone, c); err != nil {
				t.Error(err)
			}
		})
		if st := c.wait(t); st != 0 {
			t.Fatal(round, st)
		}
		if !bytes.Equal(bytes.Join(back, nil), data) {
			t.Fatal(round, "data read differs")
		}
	}
}

// Pieces that fail: one completion with the first error, and the rest of the
// transfer is not issued.
func TestSplitFailure(t *testing.T) {
	d := newFakeDisk(512, 4096)
	d.id.MDTS = 0
	r := newRig(t, d, nil)
	d.id.MDTS = 1
	r.ns.geo.Store(func() *geometry { g := *r.ns.geo.Load(); g.oneCommand = 8; return &g }())
	q := r.queue(3) // two in flight
	seen := 0
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() == 0 {
			return 0, true
		}
		if seen++; seen == 3 {
			return StatusUnrecoveredReadError, true
		}
		return 0, true
	}
	c := newCollect()
	r.on(func() {
		if err := q.Read(make([]byte, 1000*512), 0, 1000, collectDone, c); err != nil {
			t.Error(err)
		}
	})
	if st := c.wait(t); st.Code() != StatusUnrecoveredReadError {
		t.Fatal(st)
	}
	r.on(func() {
		if seen > 5 {
			t.Errorf("%d pieces were issued", seen)
		}
		if q.Room() != 2 || q.qp.inflight != 0 || q.qp.stalled.head != nil || len(q.qp.freeOps) != len(q.qp.ops) {
			t.Error("something leaked")
		}
	})
	c.none(t)
}

func TestQueueFullAndRecovery(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	q := r.queue(4)
	c := newCollect()
	r.on(func() {
		buf := make([]byte, 512)
		for i := range 3 {
			if err := q.Write(buf, uint64(i), 1, collectDone, c); err != nil {
				t.Error(err)
			}
		}
		if q.Room() != 0 {
			t.Error("room", q.Room())
		}
		if err := q.Write(buf, 5, 1, collectDone, c); !errors.Is(err, ErrQueueFull) {
			t.Error(err)
		}
	})
	for range 3 {
		if st := c.wait(t); st != 0 {
			t.Fatal(st)
		}
	}
	r.on(func() {
		if q.Room() != 3 {
			t.Error("room", q.Room())
		}
	})
	c.none(t)
}

func TestBadIO(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.id.ONCS = 0
	r := newRig(t, d, nil)
	q := r.queue(8)
	c := newCollect()
	b := make([]byte, 1024)
	r.on(func() {
		for name, f := range map[string]struct {
			err  error
			want error
		}{
			"past the end":       {q.Read(b, 63, 2, collectDone, c), ErrOutOfRange},
			"at the end":         {q.Read(b[:512], 64, 1, collectDone, c), ErrOutOfRange},
			"LBA wraps":          {q.Read(b, ^uint64(0), 2, collectDone, c), ErrOutOfRange},
			"no blocks":          {q.Write(nil, 0, 0, collectDone, c), ErrLength},
			"short buffer":       {q.Write(b[:1023], 0, 2, collectDone, c), ErrLength},
			"long buffer":        {q.Read(b, 0, 1, collectDone, c), ErrLength},
			"short vector":       {q.ReadV([][]byte{b[:100], b[:100]}, 0, 1, collectDone, c), ErrLength},
			"no compare":         {q.Compare(b, 0, 2, collectDone, c), ErrUnsupported},
			"no zeroes":          {q.WriteZeroes(0, 1, collectDone, c), ErrUnsupported},
			"no verify":          {q.Verify(0, 1, collectDone, c), ErrUnsupported},
			"no deallocate":      {q.Deallocate([]DSMRange{{Length: 1}}, collectDone, c), ErrUnsupported},
			"raw, short buffer":  {q.Submit(&Command{Opcode: OpRead}, Data{Buf: b[:10], Len: 512, Dir: DirIn}, nil, nil), ErrLength},
			"opcode of Issue":    {q.Issue(&IO{Op: OpFlush, Blocks: 1}), ErrUnsupported},
			"buffer and vector":  {q.Issue(&IO{Op: OpRead, Blocks: 2, Buf: b, Vec: [][]byte{b}}), ErrLength},
			"fused, not a block": {q.CompareAndWrite(b[:5], b[:512], 0, 1, collectDone, c), ErrLength},
		} {
			if !errors.Is(f.err, f.want) {
				t.Errorf("%s: %v, want %v", name, f.err, f.want)
			}
		}
	})
	if p := d.pieces(); len(p) != 0 {
		t.Fatalf("commands went out: %v", p)
	}
	c.none(t)
}

func TestOtherCommands(t *testing.T) {
	d := newFakeDisk(512, 1024)
	rand.New(rand.NewSource(3)).Read(d.disk)
	d.nvm = &IdentifyControllerNVM{WZSL: 1, VSL: 1, DMRL: 3, DMRSL: 10, DMSL: 25}
	r := newRig(t, d, nil)
	q := r.queue(4)
	c := newCollect()
	do := func(name string, want Status, f func() error) {
		t.Helper()
		r.on(func() {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if st := c.wait(t); st.Code() != want {
			t.Fatalf("%s: %v", name, st)
		}
	}
	do("compare", 0, func() error { return q.Compare(bytes.Clone(d.disk[:1024]), 0, 2, collectDone, c) })
	do("compare differs", StatusCompareFailure, func() error { return q.Compare(make([]byte, 512), 0, 1, collectDone, c) })
	d.pieces()
	do("write zeroes", 0, func() error { return q.WriteZeroes(8, 40, collectDone, c) })
	if p := d.pieces(); !slices.Equal(p, [][2]uint64{{8, 16}, {24, 16}, {40, 8}}) {
		t.Fatal(p)
	}
	if !bytes.Equal(d.disk[8*512:48*512], make([]byte, 40*512)) || d.disk[48*512] == 0 && d.disk[48*512+1] == 0 {
		t.Fatal("zeroes in the wrong place")
	}
	do("verify", 0, func() error { return q.Verify(0, 17, collectDone, c) })
	if p := d.pieces(); !slices.Equal(p, [][2]uint64{{0, 16}, {16, 1}}) {
		t.Fatal(p)
	}
	do("flush", 0, func() error { return q.Flush(collectDone, c) })
	d.pieces()
	// 15+35+1+4 blocks in ranges of at most 10, three a command, 25 blocks a command.
	ranges := []DSMRange{{LBA: 100, Length: 15}, {LBA: 200, Length: 35}, {LBA: 300, Length: 1}, {LBA: 400, Length: 4}}
	do("deallocate", 0, func() error { return q.Deallocate(ranges, collectDone, c) })
	for _, g := range ranges {
		if b := d.disk[g.LBA*512 : (g.LBA+uint64(g.Length))*512]; !bytes.Equal(b, make([]byte, len(b))) {
			t.Fatalf("range %v not deallocated", g)
		}
		end := (g.LBA + uint64(g.Length)) * 512
		if bytes.Equal(d.disk[end:end+512], make([]byte, 512)) {
			t.Fatalf("block after %v was deallocated, too", g)
		}
	}
	for _, cmd := range d.commands {
		if n := cmd.CDW10 + 1; n > 3 || cmd.CDW11 != 4 {
			t.Fatalf("command with %d ranges, CDW11 %#x", n, cmd.CDW11)
		}
	}
	if n := len(d.commands); n != 3 {
		t.Fatalf("%d commands", n)
	}
	d.pieces()
	old := bytes.Clone(d.disk[:512])
	do("fused", 0, func() error { return q.CompareAndWrite(old, make([]byte, 512), 0, 1, collectDone, c) })
	if d.commands[0].Flags&FlagFuseMask != FlagFuseFirst || d.commands[1].Flags&FlagFuseMask != FlagFuseSecond {
		t.Fatal(d.commands)
	}
	c.none(t)
}

// Commands that complete twice, or that were never posted, are not found.
func TestFind(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	q := r.queue(4)
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) { return 0, fq.qp.ID() == 0 }
	c := newCollect()
	r.on(func() {
		if err := q.Read(make([]byte, 512), 0, 1, collectDone, c); err != nil {
			t.Fatal(err)
		}
	})
	r.on(func() {
		fq := d.queues[q.qp.ID()]
		rq := fq.silent[0]
		cid := rq.Cmd.CID
		found := 0
		for i := range 1 << 16 {
			if q.qp.Find(uint16(i)) != nil {
				found++
			}
		}
		if found != 1 || q.qp.Find(cid) != rq {
			t.Errorf("%d identifiers are found", found)
		}
		q.qp.Complete(rq, &Completion{CID: cid})
		if q.qp.Find(cid) != nil {
			t.Error("found after completion")
		}
	})
	if st := c.wait(t); st != 0 {
		t.Fatal(st)
	}
}

func TestBlockingIO(t *testing.T) {
	d := newFakeDisk(512, 1024)
	d.id.MDTS = 1
	r := newRig(t, d, &Config{QueueSize: 4})
	ctx := context.Background()
	data := make([]byte, 100*512)
	rand.New(rand.NewSource(5)).Read(data)
	if n, err := r.ns.WriteAt(data, 512*7); n != len(data) || err != nil {
		t.Fatal(n, err)
	}
	back := make([]byte, len(data))
	if n, err := r.ns.ReadAt(back, 512*7); n != len(data) || err != nil || !bytes.Equal(back, data) {
		t.Fatal(n, err)
	}
	if n, err := r.ns.ReadAt(back, 1000*512); n != 24*512 || err == nil || err.Error() != "EOF" {
		t.Fatal(n, err)
	}
	if n, err := r.ns.WriteAt(data, 1000*512); n != 0 || !errors.Is(err, ErrOutOfRange) {
		t.Fatal(n, err)
	}
	var ae *AlignmentError
	if _, err := r.ns.ReadAt(back[:512], 100); !errors.As(err, &ae) || ae.BlockSize != 512 {
		t.Fatal(err)
	}
	if _, err := r.ns.WriteAt(back[:511], 512); !errors.As(err, &ae) || ae.Length != 511 {
		t.Fatal(err)
	}
	if err := r.ns.CompareAt(ctx, data, 512*7); err != nil {
		t.Fatal(err)
	}
	if err := r.ns.CompareAt(ctx, data, 0); !errors.Is(err, StatusCompareFailure) {
		t.Fatal(err)
	}
	for _, err := range []error{r.ns.Flush(ctx), r.ns.WriteZeroes(ctx, 512*7, 512*3), r.ns.Verify(ctx, 0, 512*1024), r.ns.Deallocate(ctx, 512*20, 512*10)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(d.disk[512*7:512*10], make([]byte, 512*3)) || !bytes.Equal(d.disk[512*20:512*30], make([]byte, 5120)) {
		t.Fatal("not zeroed")
	}
	// Many callers at once on a queue with three trackers.
	errs := make(chan error, 64)
	for i := range 64 {
		go func() {
			b := make([]byte, 512)
			b[0] = byte(i)
			_, err := r.ns.WriteAt(b, int64(i)*512)
			errs <- err
		}()
	}
	for range 64 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for i := range 64 {
		if d.disk[i*512] != byte(i) {
			t.Fatal("lost write", i)
		}
	}
	cpl, err := r.ns.Passthrough(ctx, &Command{Opcode: OpRead, CDW10: 3}, back[:512])
	if err != nil || cpl.Status() != 0 || back[0] != 3 {
		t.Fatal(cpl, err)
	}
}

// A blocking call whose context ends: the command is aborted, and the call
// returns only when the controller let go of the buffer.
func TestBlockingCancel(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, nil)
	started := make(chan struct{})
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() != 0 {
			close(started)
			return 0, false
		}
		return 0, true
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("had enough")
	go func() {
		<-started
		cancel(why)
	}()
	if _, err := r.ns.ReadAtContext(ctx, make([]byte, 512), 0); !errors.Is(err, why) {
		t.Fatal(err)
	}
	r.on(func() {
		if n := r.c.blocking.qp.Load().inflight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
	if err := r.p.Call(context.Background(), func() {
		if _, err := r.ns.ReadAt(make([]byte, 512), 0); !errors.Is(err, ErrOnCore) {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
