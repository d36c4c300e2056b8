//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/poller"
)

// drive is one controller that is driven in a test.
type drive struct {
	p  *poller.Poller
	c  *nvme.Controller
	ns *nvme.Namespace
}

// setting is what a test of a drive wants of it.
type setting struct {
	transport pcie.Config
	change    func(*nvme.Config)
	run       func(context.Context, *drive) error
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// oddShifts are where buffers begin within a page: what PRP entries can say.
var oddShifts = []int{0, 4, 8, 512, 2048, 4092}

// byteShifts are where they begin where all is possible.
var byteShifts = []int{0, 1, 3, 513, 4095}

var drives = map[string]setting{
	"identify": {run: identifyDrive},
	// QEMU takes 1024 pages in one command: the list of PRP entries for as many
	// goes over three pages.
	"sizes":      {transport: pcie.Config{MaxTransfer: 4*mib - 4*kib, SGL: pcie.SGLNever}, run: sizes},
	"sgl":        {transport: pcie.Config{SGL: pcie.SGLAlways, MaxTransfer: 2 * mib}, run: sgls},
	"depths":     {run: depths},
	"bells":      {transport: pcie.Config{NoShadowDoorbells: true, EagerCQ: true}, run: mixed},
	"interrupts": {transport: pcie.Config{Interrupts: true}, run: mixed},
	"cmb":        {transport: pcie.Config{CMB: pcie.CMBQueues | pcie.CMBData}, run: cmb},
	"format":     {run: format},
	"attach":     {run: attach},
	"media":      {run: media},
	"stall":      {change: watchTimeouts, run: stall},
	"reset":      {run: resets},
	"soak":       {run: soak},
	"gone":       {run: untilGone},
}

// testDrives runs tests of one function, each with a controller opened anew.
func testDrives(ctx context.Context, address string, names []string) error {
	sys.Track()
	for _, name := range names {
		s, ok := drives[name]
		if !ok {
			return fmt.Errorf("no test %q, only %v", name, slices.Sorted(maps.Keys(drives)))
		}
		start := time.Now()
		if err := withDrive(ctx, address, s, s.run); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("ok %s %.1f s\n", name, time.Since(start).Seconds())
		if err := leftOpen(); err != nil {
			return fmt.Errorf("after %s: %w", name, err)
		}
	}
	return nil
}

func newPoller() (*poller.Poller, error) {
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

// withDrive opens a controller with its first namespace and closes it after f.
func withDrive(ctx context.Context, address string, s setting, f func(context.Context, *drive) error) (err error) {
	p, err := newPoller()
	if err != nil {
		return err
	}
	defer p.Close()
	t := s.transport
	cfg := nvme.Config{Poller: p, Transport: &t, QueueSize: 64}
	if s.change != nil {
		s.change(&cfg)
	}
	c, err := nvme.Open(ctx, "trtype:pcie traddr:"+address, &cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	ns, err := c.Namespace(ctx, 1)
	if err != nil {
		return err
	}
	return f(ctx, &drive{p, c, ns})
}

func (d *drive) load(ctx context.Context, l *load) error {
	l.c = d.c
	return l.run(ctx, d.p, d.ns)
}

func identifyDrive(_ context.Context, d *drive) error {
	id := d.c.Identify()
	if !strings.HasPrefix(id.ModelNumber(), "QEMU NVMe") || id.VID != 0x1b36 || d.ns.BlockSize() != 512 || d.ns.Blocks() == 0 {
		return fmt.Errorf("model %q, vendor %#x, %d blocks of %d", id.ModelNumber(), id.VID, d.ns.Blocks(), d.ns.BlockSize())
	}
	return nil
}

func sizes(ctx context.Context, d *drive) error {
	for _, heap := range []bool{false, true} {
		for _, size := range []int{512, 1024, 4 * kib, 4*kib + 512, 8 * kib, 12*kib + 512, 64 * kib, 128*kib + 512, mib + 512, 4 * mib, 8 * mib} {
			for _, shift := range oddShifts {
				if heap && size > mib+512 && shift != 4 {
					continue
				}
				err := d.load(ctx, &load{queues: 1, depth: 1, sizes: []int{size}, shifts: []int{shift}, ops: 1, heap: heap})
				if err != nil {
					return fmt.Errorf("%d bytes at %d, heap %v: %w", size, shift, heap, err)
				}
			}
		}
	}
	return nil
}

func sgls(ctx context.Context, d *drive) error {
	if d.c.Identify().SGLS&nvme.SGLSMask == 0 {
		return errors.New("the controller has no SGLs")
	}
	for _, size := range []int{512, 4 * kib, 64 * kib, 512*kib + 512, 2 * mib} {
		for _, shift := range byteShifts {
			if err := d.load(ctx, &load{queues: 1, depth: 2, sizes: []int{size}, shifts: []int{shift}, ops: 1}); err != nil {
				return fmt.Errorf("%d bytes at %d: %w", size, shift, err)
			}
		}
	}
	return nil
}

func depths(ctx context.Context, d *drive) error {
	for queues := 1; queues <= 4; queues++ {
		for _, depth := range []int{1, 2, 31, 256, 1023} {
			err := d.load(ctx, &load{queues: queues, depth: depth, sizes: []int{512, 4 * kib}, shifts: []int{0, 4}, ops: max(1, 256/(depth*queues))})
			if err != nil {
				return fmt.Errorf("%d queues of depth %d: %w", queues, depth, err)
			}
		}
	}
	return nil
}

func mixed(ctx context.Context, d *drive) error {
	for _, heap := range []bool{false, true} {
		err := d.load(ctx, &load{queues: 2, depth: 16, sizes: []int{512, 4 * kib, 16*kib + 512}, shifts: oddShifts, ops: 10, heap: heap})
		if err != nil {
			return err
		}
	}
	return nil
}

// cmb: with queues and data in the controller's memory, the data of what is not
// registered goes there.
func cmb(ctx context.Context, d *drive) error {
	size, err := d.c.Transport().Property(ctx, 0x3c, 4)
	if err != nil || size == 0 {
		return fmt.Errorf("CMBSZ is %#x: %w", size, err)
	}
	return mixed(ctx, d)
}

// admin sends a command for the first namespace.
func (d *drive) admin(ctx context.Context, cmd nvme.Command, buf []byte) error {
	_, err := d.c.Admin(ctx, &cmd, buf)
	return err
}

// format changes the size of the blocks, and back.
func format(ctx context.Context, d *drive) error {
	formats := d.ns.Identify().LBAF
	for _, want := range []int{4096, 512} {
		i := slices.IndexFunc(formats[:], func(f nvme.LBAFormat) bool { return 1<<f.LBADS == want && f.MS == 0 })
		if i < 0 {
			return fmt.Errorf("no format with blocks of %d", want)
		}
		if err := d.admin(ctx, nvme.FormatCommand{NSID: 1, Index: uint8(i)}.Command(), nil); err != nil {
			return fmt.Errorf("format with blocks of %d: %w", want, err)
		}
		ns, err := d.c.Namespace(ctx, 1)
		if err != nil || ns.BlockSize() != want {
			return fmt.Errorf("blocks of %d, want %d: %w", ns.BlockSize(), want, err)
		}
		d.ns = ns
		b := make([]byte, 4096)
		b[0] = 1
		if _, err := ns.ReadAt(b, 0); err != nil || b[0] != 0 {
			return fmt.Errorf("a formatted block holds %d: %w", b[0], err)
		}
		if err := d.load(ctx, &load{queues: 1, depth: 4, sizes: []int{4 * kib, 64 * kib}, shifts: []int{0}, ops: 3}); err != nil {
			return err
		}
	}
	return nil
}

// attach takes the namespace away from the controller and gives it back.
func attach(ctx context.Context, d *drive) error {
	list := make([]byte, 4096)
	list[0] = 1
	le.PutUint16(list[2:], d.c.Identify().CNTLID)
	for _, detach := range []bool{true, false} {
		if err := d.admin(ctx, nvme.NamespaceAttachmentCommand{NSID: 1, Detach: detach}.Command(), list); err != nil {
			return fmt.Errorf("detach %v: %w", detach, err)
		}
		end := time.Now().Add(patience)
		for {
			_, err := d.c.Namespace(ctx, 1)
			if detach == errors.Is(err, nvme.ErrNoNamespace) && (detach || err == nil) {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("detach %v: %w", detach, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	ns, err := d.c.Namespace(ctx, 1)
	if err != nil {
		return err
	}
	d.ns = ns
	return mixed(ctx, d)
}

// badBlock is what the drive of the media test cannot read.
const badBlock = 64

func media(ctx context.Context, d *drive) error {
	b := make([]byte, 512)
	var st nvme.Status
	for range 2 {
		_, err := d.ns.ReadAt(b, badBlock*512)
		if !errors.As(err, &st) || st.Code()&0x7ff != 0x281 {
			return fmt.Errorf("reading a bad block: %w", err)
		}
		if _, err := d.ns.ReadAt(b, (badBlock+8)*512); err != nil {
			return fmt.Errorf("reading another: %w", err)
		}
	}
	return nil
}

// What the library did about commands that took too long.
var timeouts struct{ aborts, resets atomic.Uint64 }

func watchTimeouts(c *nvme.Config) {
	c.IOTimeout = 2 * time.Second
	c.Events = &nvme.Events{
		Timeout:   func(_ *nvme.Controller, _, _ uint16, _ time.Duration, _ string) { timeouts.aborts.Add(1) },
		Reconnect: func(*nvme.Controller, int, error) { timeouts.resets.Add(1) },
	}
}

// stall: the drive takes an operation now and then, and 16 at a time take longer
// than they may. They are aborted, the controller is reset, and in the end all are
// done, with the right data, or have failed.
func stall(ctx context.Context, d *drive) error {
	l := load{queues: 1, depth: 16, sizes: []int{4 * kib}, shifts: []int{0}, ops: 1, tolerate: true}
	if err := d.load(ctx, &l); err != nil {
		return err
	}
	fmt.Printf("stall: %d operations, %d failed, %d timeouts, %d resets\n", l.done.Load(), l.failed.Load(), timeouts.aborts.Load(), timeouts.resets.Load())
	if timeouts.aborts.Load() == 0 || timeouts.resets.Load() == 0 {
		return errors.New("nothing was aborted, or not reset")
	}
	_, err := d.ns.ReadAt(make([]byte, 512), 0)
	return err
}

// resets resets the controller under load, which notices nothing.
func resets(ctx context.Context, d *drive) error {
	l := load{c: d.c, queues: 2, depth: 8, sizes: []int{512, 16 * kib}, shifts: oddShifts}
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx, d.p, d.ns) }()
	for range 3 {
		if err := more(&l, 50); err != nil {
			return err
		}
		if err := d.c.Reset(ctx); err != nil {
			return err
		}
	}
	err := more(&l, 50)
	l.stop.Store(true)
	return errors.Join(err, <-ended)
}

// more waits for n more operations.
func more(l *load, n uint64) error {
	to := l.done.Load() + n
	for end := time.Now().Add(patience); l.done.Load() < to; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("no progress after %d operations, controller %v", l.done.Load(), l.c.State())
		}
	}
	return nil
}

const soakTime = 30 * time.Second

// soak is everything at once, for a while.
func soak(ctx context.Context, d *drive) error {
	half := d.ns.Blocks() / 2
	sizes := []int{512, 4 * kib, 20*kib + 512, 128 * kib, 256 * kib}
	loads := []*load{
		{c: d.c, queues: 2, depth: 8, sizes: sizes, shifts: oddShifts},
		{c: d.c, queues: 2, depth: 8, sizes: sizes, shifts: byteShifts, heap: true, base: half},
	}
	ended := make(chan error, len(loads))
	for _, l := range loads {
		go func() { ended <- l.run(ctx, d.p, d.ns) }()
	}
	time.Sleep(soakTime)
	for _, l := range loads {
		l.stop.Store(true)
	}
	err := errors.Join(<-ended, <-ended)
	fmt.Printf("soak: %d and %d operations\n", loads[0].done.Load(), loads[1].done.Load())
	return err
}

// untilGone loads the controller until it is taken away.
func untilGone(ctx context.Context, d *drive) error {
	l := load{c: d.c, queues: 2, depth: 16, sizes: []int{4 * kib, 64 * kib}, shifts: oddShifts, tolerate: true}
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx, d.p, d.ns) }()
	if err := more(&l, 100); err != nil {
		return err
	}
	fmt.Println("loaded")
	if err := <-ended; err != nil && !errors.Is(err, nvme.ErrDead) {
		return err
	}
	_, err := d.ns.ReadAt(make([]byte, 512), 0)
	if l.failed.Load() != 32 || d.c.State() != nvme.StateDead || !errors.Is(err, nvme.ErrDead) {
		return fmt.Errorf("%d of 32 failed, controller %v, %w", l.failed.Load(), d.c.State(), err)
	}
	fmt.Println("gone")
	var b [1]byte
	_, _ = os.Stdin.Read(b[:])
	return nil
}

// testShared writes through one controller of a subsystem and reads through the
// other.
func testShared(ctx context.Context, first, second string) error {
	return withDrive(ctx, first, setting{}, func(ctx context.Context, a *drive) error {
		return withDrive(ctx, second, setting{}, func(ctx context.Context, b *drive) error {
			ia, ib := a.c.Identify(), b.c.Identify()
			na, err1 := ia.SubsystemNQN()
			nb, err2 := ib.SubsystemNQN()
			if err := errors.Join(err1, err2); err != nil || ia.CNTLID == ib.CNTLID || na != nb || !a.ns.Shared() {
				return fmt.Errorf("controllers %d and %d of %q and %q, shared %v: %w", ia.CNTLID, ib.CNTLID, na, nb, a.ns.Shared(), err)
			}
			for i := range 64 {
				w, r := make([]byte, 8*kib), make([]byte, 8*kib)
				for k := range w {
					w[k] = byte(i + k*7)
				}
				from, to := a, b
				if i%2 == 1 {
					from, to = b, a
				}
				_, werr := from.ns.WriteAt(w, int64(i)*8*kib)
				_, rerr := to.ns.ReadAt(r, int64(i)*8*kib)
				if err := errors.Join(werr, rerr); err != nil || string(w) != string(r) {
					return fmt.Errorf("round %d: equal %v, %w", i, string(w) == string(r), err)
				}
			}
			return nil
		})
	})
}
