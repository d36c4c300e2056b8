package nvme

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// logDisk answers Get Log Page with bytes that name their offset.
func logDisk() (*fakeDisk, *[]Command) {
	d := newFakeDisk(512, 64)
	var asked []Command
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() != 0 || rq.Cmd.Opcode != AdminGetLogPage {
			return 0, true
		}
		asked = append(asked, rq.Cmd)
		for i := range rq.Data.Buf {
			rq.Data.Buf[i] = byte((uint64(i) + logOffset(&rq.Cmd)) / 4)
		}
		fq.cpl.StatusPhase = 0
		fq.qp.Complete(rq, &fq.cpl)
		return 0, false
	}
	return d, &asked
}

func logOffset(c *Command) uint64 { return uint64(c.CDW12) | uint64(c.CDW13)<<32 }

func TestLogPageChunks(t *testing.T) {
	d, asked := logDisk()
	d.id.MDTS, d.most = 1, 8191 // of two limits the smaller, and no multiple of 4
	r := newRig(t, d, nil)
	buf := make([]byte, 20000)
	if err := r.c.LogPage(context.Background(), LogTelemetryHost, buf, LogOptions{Offset: 1 << 33, LSP: 5, LSI: 6, UUID: 7}); err != nil {
		t.Fatal(err)
	}
	off := uint64(1 << 33)
	for i, cmd := range *asked {
		n := (uint64(cmd.CDW10>>16) | uint64(cmd.CDW11&0xffff)<<16) + 1
		last := i == len(*asked)-1
		if logOffset(&cmd) != off || n*4 > 8191 || cmd.CDW10&(1<<15) == 0 != last || cmd.CDW10>>8&0x7f != 5 || cmd.CDW11>>16 != 6 || cmd.CDW14 != 7 {
			t.Errorf("%d: %+v", i, cmd)
		}
		off += n * 4
	}
	if off != 1<<33+20000 {
		t.Error(off)
	}
	for i, b := range buf {
		if b != byte((uint64(i)+1<<33)/4) {
			t.Fatal(i, b)
		}
	}
	*asked = nil
	if err := r.c.LogPage(context.Background(), LogSMART, buf[:512], LogOptions{RAE: true}); err != nil || (*asked)[0].CDW10&(1<<15) == 0 {
		t.Fatal(err, *asked)
	}
	for name, call := range map[string]func() error{
		"length": func() error { return r.c.LogPage(context.Background(), LogSMART, buf[:511], LogOptions{}) },
		"none":   func() error { return r.c.LogPage(context.Background(), LogSMART, nil, LogOptions{}) },
		"offset": func() error { return r.c.LogPage(context.Background(), LogSMART, buf[:4], LogOptions{Offset: 2}) },
	} {
		if err := call(); !errors.Is(err, ErrLength) {
			t.Error(name, err)
		}
	}
}

// A controller that ignores offsets would answer with the beginning each time.
func TestLogPageWithoutOffsets(t *testing.T) {
	d, asked := logDisk()
	d.id.MDTS, d.id.LPA = 1, 0
	r := newRig(t, d, nil)
	ctx := context.Background()
	if err := r.c.LogPage(ctx, LogSMART, make([]byte, 4096), LogOptions{}); err != nil {
		t.Error(err)
	}
	*asked = nil
	if err := r.c.LogPage(ctx, LogSMART, make([]byte, 8196), LogOptions{}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if err := r.c.LogPage(ctx, LogSMART, make([]byte, 4), LogOptions{Offset: 4}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if len(*asked) != 0 {
		t.Error(*asked)
	}
}

func TestPassthrough(t *testing.T) {
	d := newFakeDisk(512, 64)
	d.id.MDTS = 1
	var seen Request
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode < 0xc0 {
			return 0, true
		}
		seen = *rq
		if rq.Cmd.Opcode == 0xc2 {
			copy(rq.Data.Buf, "from the device")
		}
		if rq.Cmd.Opcode == 0xc4 {
			return StatusInvalidField | StatusDNR | StatusMore, true
		}
		fq.cpl.Result = 0x1122334455667788
		fq.cpl.StatusPhase = 0
		fq.qp.Complete(rq, &fq.cpl)
		return 0, false
	}
	r := newRig(t, d, nil)
	ctx := context.Background()
	out := []byte("to the device...")
	cpl, err := r.c.Admin(ctx, &Command{Opcode: 0xc1, CID: 99, Flags: FlagSGL, CDW15: 5}, out)
	if err != nil || cpl.Result != 0x1122334455667788 || !bytes.Equal(seen.Data.Buf, out) || &seen.Data.Buf[0] == &out[0] ||
		seen.Data.Dir != DirOut || seen.Cmd.Flags != 0 || seen.Cmd.CDW15 != 5 {
		t.Fatalf("%+v %v %+v", cpl, err, seen)
	}
	in := make([]byte, 15)
	if _, err := r.c.Admin(ctx, &Command{Opcode: 0xc2}, in); err != nil || string(in) != "from the device" {
		t.Fatalf("%q, %v", in, err)
	}
	cpl, err = r.c.Admin(ctx, &Command{Opcode: 0xc4}, nil)
	var st Status
	if !errors.As(err, &st) || st != StatusInvalidField|StatusDNR|StatusMore || cpl.Status() != st {
		t.Fatal(cpl, err)
	}
	for name, tc := range map[string]struct {
		cmd  Command
		n    int
		want error
	}{
		"beyond MDTS":          {Command{Opcode: 0xc1}, 8193, ErrLength},
		"data, none in opcode": {Command{Opcode: 0xc0}, 1, ErrLength},
		"data both ways":       {Command{Opcode: 0xc3}, 1, ErrUnsupported},
		"fabrics, no data":     {Command{Opcode: OpFabrics, NSID: 4}, 1, ErrLength},
	} {
		seen = Request{}
		if _, err := r.c.Admin(ctx, &tc.cmd, make([]byte, tc.n)); !errors.Is(err, tc.want) || seen.Cmd.Opcode != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A command whose caller has given up before it was sent is not sent later.
func TestAdminGivenUpWhileHeld(t *testing.T) {
	d := newFakeDisk(512, 64)
	r := newRig(t, d, &Config{ReconnectDelay: time.Millisecond})
	var up atomic.Bool
	hold := make(chan struct{})
	d.mu.Lock()
	d.refuse = func(uint16) error {
		if up.Load() {
			return nil
		}
		return errRefused
	}
	d.disconnecting = func(*QueuePair) { <-hold }
	d.mu.Unlock()
	var sent atomic.Int32
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if rq.Cmd.Opcode == AdminFormatNVM {
			sent.Add(1)
		}
		return 0, true
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	// The connection is lost; the controller is live until the manager knows.
	r.on(func() {
		d.queue(0).up = false
		r.c.admin.state = queueDown
	})
	call := outcome(func() error { _, err := r.c.Admin(ctx, &Command{Opcode: AdminFormatNVM}, nil); return err })
	eventually(t, "it is held", func() (held bool) {
		r.on(func() { held = r.c.admin.Stats().Held == 1 })
		return held
	})
	why := errors.New("had enough")
	cancel(why)
	if err := await(t, call); !errors.Is(err, why) {
		t.Fatal(err)
	}
	eventually(t, "it is forgotten", func() (gone bool) {
		r.on(func() { gone = r.c.admin.Stats().Held == 0 })
		return gone
	})
	close(hold)
	up.Store(true)
	r.on(func() { r.c.admin.Lost(errCut) })
	if err := r.c.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := sent.Load(); n != 0 {
		t.Fatal("sent", n)
	}
}
