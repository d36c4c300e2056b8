package tcp_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// journal takes down the I/O commands that a controller gets, by connection,
// and leaves them unanswered while it is told to.
type journal struct {
	mu   sync.Mutex
	cmds []nvme.Command
	hold bool
}

func (j *journal) override(r *tcptest.Request) bool {
	if r.Queue == 0 || r.Cmd.Opcode == nvme.OpFabrics {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cmds = append(j.cmds, r.Cmd)
	return j.hold
}

// take returns what was taken down since the last time.
func (j *journal) take() []nvme.Command {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.cmds
	j.cmds = nil
	return list
}

func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.cmds)
}

func (j *journal) setHold(on bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hold = on
}

// lbas returns where the commands begin.
func lbas(cmds []nvme.Command) (list []uint64) {
	for i := range cmds {
		lba, _ := tcptest.LBA(&cmds[i])
		list = append(list, lba)
	}
	return list
}

func span(from, to uint64) (list []uint64) {
	for ; from < to; from++ {
		list = append(list, from)
	}
	return list
}

// Commands in flight at a loss, and those submitted until the connection is
// back, go out in the order in which they were submitted.
func TestWireCase10ReplayOrder(t *testing.T) {
	t.Parallel()
	k, ns := disk(4096)
	j := &journal{hold: true}
	k.Override = j.override
	f := open(t, k, quickReconnect)
	q := f.queue(nvme.QueueConfig{Size: 128})
	data := pattern(make([]byte, 80*512), 1)
	next := uint64(0)
	more := func(n int) {
		for range n {
			lba := next
			next++
			f.submit(fmt.Sprintf("write %d", lba), func(o *op) error {
				return q.Write(data[lba*512:(lba+1)*512], lba, 1, opDone, o)
			})
		}
	}
	more(20)
	eventually(t, "the first commands", func() bool { return j.len() == 20 })
	if got := lbas(j.take()); !slices.Equal(got, span(0, 20)) {
		t.Fatalf("first sent in the order %v", got)
	}
	for range 3 { // losses, with nothing answered in between
		f.lose()
		more(20)
		before := int(next)
		f.comeBack()
		eventually(t, "the commands to come again", func() bool { return j.len() == before })
		if got := lbas(j.take()); !slices.Equal(got, span(0, next)) {
			t.Fatalf("replayed in the order %v", got)
		}
	}
	f.lose()
	j.setHold(false)
	f.comeBack()
	for _, o := range f.ops {
		if st := o.wait(t); !st.OK() {
			t.Errorf("%s: %v", o.name, st)
		}
	}
	if got := lbas(j.take()); !slices.Equal(got, span(0, next)) {
		t.Errorf("replayed in the order %v", got)
	}
	got := make([]byte, len(data))
	if _, err := ns.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the media does not hold what was written (%v)", err)
	}
}

// What was answered before the loss is not sent again.
func TestWireCase10AnsweredIsNotReplayed(t *testing.T) {
	t.Parallel()
	k, _ := disk(1024)
	var g gate
	j := new(journal)
	k.Override = func(r *tcptest.Request) bool {
		j.override(r)
		if lba, _ := tcptest.LBA(&r.Cmd); lba%2 == 0 && r.Queue != 0 {
			return g.override(r)
		}
		return false
	}
	g.shut.Store(true)
	f := open(t, k, quickReconnect)
	q := f.queue(nvme.QueueConfig{})
	for lba := range uint64(20) {
		f.submit(fmt.Sprintf("read %d", lba), func(o *op) error { return q.Read(make([]byte, 512), lba, 1, opDone, o) })
	}
	for lba := 1; lba < 20; lba += 2 {
		if st := f.ops[lba].wait(t); !st.OK() {
			t.Fatalf("%s: %v", f.ops[lba].name, st)
		}
	}
	eventually(t, "the other half", func() bool { return g.seen.Load() == 10 })
	j.take()
	f.lose()
	g.shut.Store(false)
	f.comeBack()
	for _, o := range f.ops {
		o.wait(t)
	}
	if got, want := lbas(j.take()), []uint64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}; !slices.Equal(got, want) {
		t.Errorf("replayed %v, want %v", got, want)
	}
}

// A command goes out as often as Config.Retries allows after the first time.
func TestWireCase10Retries(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{-1, 1, 3} {
		t.Run(fmt.Sprint(retries), func(t *testing.T) {
			k, _ := disk(64)
			j := &journal{hold: true}
			k.Override = j.override
			f := open(t, k, quickReconnect, func(cfg *nvme.Config) { cfg.Retries = retries })
			q := f.queue(nvme.QueueConfig{})
			o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 5, 1, opDone, o) })
			for i := range 1 + max(retries, 0) {
				eventually(t, "the command", func() bool { return j.len() == i+1 })
				if o.isDone() {
					t.Fatalf("completed with %v after %d losses", o.st(), i)
				}
				f.lose()
				if i < max(retries, 0) {
					f.comeBack()
				}
			}
			if st := o.wait(t); st != nvme.StatusCommandAbortedByHost {
				t.Errorf("completed with %v", st)
			}
			f.comeBack()
			if n := len(j.take()); n != 1+max(retries, 0) {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// Pairs of fused commands that wait for the connection go out next to each
// other, in their place among the rest.
func TestWireCase10Fused(t *testing.T) {
	t.Parallel()
	k, _ := disk(1024)
	j := &journal{hold: true}
	k.Override = j.override
	f := open(t, k, quickReconnect)
	q := f.queue(nvme.QueueConfig{Size: 64})
	buf := make([]byte, 512)
	var want []uint64
	lba := uint64(0)
	single := func() {
		at := lba
		lba++
		want = append(want, at)
		f.submit(fmt.Sprintf("read %d", at), func(o *op) error { return q.Read(buf, at, 1, opDone, o) })
	}
	pair := func() {
		at := lba
		lba++
		want = append(want, at, at)
		for _, half := range []struct {
			op   nvme.Opcode
			flag uint8
		}{{nvme.OpCompare, nvme.FlagFuseFirst}, {nvme.OpWrite, nvme.FlagFuseSecond}} {
			cmd := nvme.Command{Opcode: half.op, Flags: half.flag, NSID: 1, CDW10: uint32(at)}
			f.submit(fmt.Sprintf("fused %#x %d", uint8(half.op), at), func(o *op) error {
				return q.Submit(&cmd, nvme.Data{Buf: buf, Len: 512, Dir: nvme.DirOut}, commandDone, o)
			})
		}
	}
	single()
	eventually(t, "the first command", func() bool { return j.len() == 1 })
	j.take()
	f.lose()
	for range 4 {
		pair()
		single()
		pair()
	}
	j.setHold(false)
	f.comeBack()
	for _, o := range f.ops {
		o.wait(t)
	}
	cmds := j.take()
	if got := lbas(cmds); !slices.Equal(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
	for i := range cmds {
		switch cmds[i].Flags & nvme.FlagFuseMask {
		case nvme.FlagFuseFirst:
			if i+1 == len(cmds) || cmds[i+1].Flags&nvme.FlagFuseMask != nvme.FlagFuseSecond || cmds[i+1].CDW10 != cmds[i].CDW10 {
				t.Errorf("the second half of the pair at %d does not follow", cmds[i].CDW10)
			}
		case nvme.FlagFuseSecond:
			if i == 0 || cmds[i-1].Flags&nvme.FlagFuseMask != nvme.FlagFuseFirst {
				t.Errorf("the first half of the pair at %d is not before", cmds[i].CDW10)
			}
		}
	}
}

// Fused commands that the controller had when the connection was lost are not
// sent again, neither half.
func TestWireCase10FusedInFlight(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	j := &journal{hold: true}
	k.Override = j.override
	f := open(t, k, quickReconnect)
	q := f.queue(nvme.QueueConfig{})
	for _, flag := range []uint8{nvme.FlagFuseFirst, nvme.FlagFuseSecond} {
		cmd := nvme.Command{Opcode: nvme.OpCompare, Flags: flag, NSID: 1}
		f.submit(fmt.Sprintf("fused %d", flag), func(o *op) error {
			return q.Submit(&cmd, nvme.Data{Buf: make([]byte, 512), Len: 512, Dir: nvme.DirOut}, commandDone, o)
		})
	}
	eventually(t, "both", func() bool { return j.len() == 2 })
	f.lose()
	for _, o := range f.ops {
		if st := o.wait(t); st != nvme.StatusCommandAbortedByHost {
			t.Errorf("%s: %v", o.name, st)
		}
	}
	j.setHold(false)
	f.comeBack()
	o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
	if st := o.wait(t); !st.OK() {
		t.Errorf("%s: %v", o.name, st)
	}
	if n := j.len(); n != 3 {
		t.Errorf("the controller got %d commands, want 3", n)
	}
}
