//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie"
)

// needsIOMMU are the tests that make no sense without one.
var needsIOMMU = map[string]bool{"mappings": true, "contained": true, "unmapped": true}

// testDevice tests an opened function without a driver: one line per test.
func testDevice(ctx context.Context, address string, args []string) error {
	cfg := pcie.VFIOConfig{}
	if len(args) == 1 {
		cfg.Backend = map[string]pcie.VFIOBackend{"group": pcie.VFIOGroup, "cdev": pcie.VFIOCdev}[args[0]]
		cfg.NoIOMMU = args[0] == "noiommu"
	}
	sys.Track()
	dev, err := pcie.OpenVFIO(ctx, address, cfg)
	if err != nil {
		return err
	}
	_, bare := dev.(pcie.PhysicalAddresser)
	for _, t := range []struct {
		name string
		run  func(context.Context, pcie.Device) error
	}{
		{"information", testInfo}, {"registers", testRegisters}, {"mappings", testMappings},
		{"identify", testIdentify}, {"contained", testContained}, {"unmapped", testUnmapped},
		{"bus master", testBusMaster}, {"reset", testReset}, {"interrupts", testInterrupts},
		{"second open", func(ctx context.Context, d pcie.Device) error { return testSecondOpen(ctx, address, cfg) }},
	} {
		if bare && needsIOMMU[t.name] {
			continue
		}
		if err := t.run(ctx, dev); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", t.name, err), dev.Close())
		}
		fmt.Println("ok", t.name)
	}
	return errors.Join(dev.Close(), leftOpen())
}

// leftOpen reports descriptors and mappings that are open still.
func leftOpen() error {
	var errs []error
	for _, r := range sys.Tracked() {
		errs = append(errs, fmt.Errorf("left open: descriptor %d, %d bytes at %#x, by\n%s", r.FD, r.Bytes, r.Address, r.Stack))
	}
	maps, err := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "vfio") {
			errs = append(errs, fmt.Errorf("left mapped: %s", line))
		}
	}
	return errors.Join(append(errs, err)...)
}

func testInfo(_ context.Context, d pcie.Device) error {
	i := d.Info()
	if i.Vendor != 0x1b36 || i.Device != 0x10 || i.Class != pcie.ClassNVMe || !i.Hardware {
		return fmt.Errorf("%+v", i)
	}
	if d.BARSize(0) < 0x2000 || d.BARSize(1) != 0 || d.Interrupts() < 2 || d.Gone() {
		return fmt.Errorf("BAR 0 of %#x bytes, BAR 1 of %#x, %d vectors, gone %v", d.BARSize(0), d.BARSize(1), d.Interrupts(), d.Gone())
	}
	return nil
}

func testRegisters(_ context.Context, d pcie.Device) error {
	capability, err1 := d.Read64(0)
	lo, err2 := d.Read32(0)
	hi, err3 := d.Read32(4)
	version, err4 := d.Read32(8)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	if capability != uint64(hi)<<32|uint64(lo) || capability&0xffff == 0 || version>>16 != 1 {
		return fmt.Errorf("CAP %#x, in halves %#x %#x, VS %#x", capability, hi, lo, version)
	}
	if err := errors.Join(d.Write32(0x24, 0x00070007), d.Write64(0x28, 0x1234567000)); err != nil {
		return err
	}
	aqa, err1 := d.Read32(0x24)
	asq, err2 := d.Read64(0x28)
	if aqa != 0x00070007 || asq != 0x1234567000 {
		return fmt.Errorf("AQA %#x, ASQ %#x, %w", aqa, asq, errors.Join(err1, err2))
	}
	w, err := d.Map(0, 0x1000, d.BARSize(0)-0x1000)
	if err != nil || w.Len() != d.BARSize(0)-0x1000 {
		return fmt.Errorf("window of %#x bytes: %w", w.Len(), err)
	}
	return nil
}

// testMappings maps memory at the ends of what is allowed, and where it is not.
func testMappings(_ context.Context, d pcie.Device) error {
	mem, err := sys.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer sys.Munmap(mem)
	m := pcie.Memory{Bytes: mem, FD: -1}
	n := uint64(len(mem))
	for _, r := range d.IOVARanges() {
		for _, iova := range []uint64{r.First, r.Last - n + 1} {
			if err := d.MapDMA(m, iova); err != nil {
				return err
			}
			if err := d.MapDMA(m, iova+n/2); err == nil {
				return fmt.Errorf("mapped over another at %#x", iova)
			}
			if err := d.UnmapDMA(iova, n); err != nil {
				return err
			}
		}
		if err := d.MapDMA(m, r.Last-n/2+1); !errors.Is(err, pcie.ErrIOVA) {
			return fmt.Errorf("beyond %#x: %w", r.Last, err)
		}
	}
	if err := d.UnmapDMA(0, n); !errors.Is(err, pcie.ErrIOVA) {
		return fmt.Errorf("nothing is mapped: %w", err)
	}
	return nil
}

// withAdmin runs f with a controller that takes commands.
func withAdmin(d pcie.Device, f func(*admin) error) error {
	a, err := newAdmin(d)
	if err != nil {
		return err
	}
	return errors.Join(f(a), a.close())
}

// testIdentify goes round the queues more than twice.
func testIdentify(_ context.Context, d pcie.Device) error {
	return withAdmin(d, func(a *admin) error {
		for range 40 {
			clear(a.mem[dataAt:])
			st, err := a.identify(a.iova + dataAt)
			if err != nil || st != 0 {
				return fmt.Errorf("status %#x: %w", st, err)
			}
			if !bytes.Contains(a.mem[dataAt+4:dataAt+24], []byte("first")) || le.Uint16(a.mem[dataAt:]) != 0x1b36 {
				return fmt.Errorf("data %q", a.mem[dataAt:dataAt+64])
			}
		}
		return nil
	})
}

// testContained has the controller write where it may not. QEMU's does not say so
// in its status; the kernel does, and everything goes on.
func testContained(_ context.Context, d pcie.Device) error {
	return withAdmin(d, func(a *admin) error {
		if _, err := a.identify(a.iova + memory + 1<<20); err != nil {
			return fmt.Errorf("a write outside of the mapping: %w", err)
		}
		if st, err := a.identify(a.iova + dataAt); st != 0 || err != nil {
			return fmt.Errorf("after that: status %#x: %w", st, err)
		}
		return nil
	})
}

// testUnmapped takes the memory away: the controller does not reach it any more.
func testUnmapped(_ context.Context, d pcie.Device) error {
	return withAdmin(d, func(a *admin) error {
		extra, err := sys.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		defer sys.Munmap(extra)
		at := a.iova + 4<<20
		if err := d.MapDMA(pcie.Memory{Bytes: extra, FD: -1}, at); err != nil {
			return err
		}
		st, err := a.identify(at)
		if err != nil || st != 0 || extra[0] == 0 {
			return fmt.Errorf("mapped: status %#x: %w", st, err)
		}
		clear(extra)
		if err := d.UnmapDMA(at, 4096); err != nil {
			return err
		}
		if _, err = a.identify(at); err != nil || !bytes.Equal(extra, make([]byte, 4096)) {
			return fmt.Errorf("unmapped, and written to: %v, %w", extra[0] != 0, err)
		}
		return nil
	})
}

// testBusMaster: without it, the controller cannot fetch commands.
func testBusMaster(_ context.Context, d pcie.Device) error {
	return withAdmin(d, func(a *admin) error {
		if st, err := a.identify(a.iova + dataAt); st != 0 || err != nil {
			return fmt.Errorf("status %#x: %w", st, err)
		}
		clear(a.mem[dataAt : dataAt+4096])
		if err := errors.Join(d.SetBusMaster(false), a.post(0x06, 0, 1, a.iova+dataAt)); err != nil {
			return err
		}
		// A register access goes after the doorbell.
		if _, err := d.Read32(0x1c); err != nil {
			return err
		}
		if a.mem[dataAt] != 0 {
			return errors.New("data came without bus mastering")
		}
		return a.enable()
	})
}

func testReset(ctx context.Context, d pcie.Device) error {
	return withAdmin(d, func(a *admin) error {
		if err := d.Reset(ctx); err != nil {
			return err
		}
		cc, err := d.Read32(0x14)
		if err != nil || cc&1 != 0 {
			return fmt.Errorf("CC is %#x after a reset: %w", cc, err)
		}
		if err := a.enable(); err != nil {
			return err
		}
		if st, err := a.identify(a.iova + dataAt); st != 0 || err != nil {
			return fmt.Errorf("after a reset: status %#x: %w", st, err)
		}
		return nil
	})
}

// testInterrupts: completions of the admin queue signal vector 0.
func testInterrupts(_ context.Context, d pcie.Device) error {
	fd, err := sys.EventFD()
	if err != nil {
		return err
	}
	defer sys.Close(fd)
	last := d.Interrupts() - 1
	return withAdmin(d, func(a *admin) error {
		// The last one has all of them turned on again.
		if err := errors.Join(d.SetInterrupt(0, fd), d.SetInterrupt(last, fd), d.SetInterrupt(last, -1)); err != nil {
			return err
		}
		_, _ = sys.EventDrain(fd)
		if st, err := a.identify(a.iova + dataAt); st != 0 || err != nil {
			return fmt.Errorf("status %#x: %w", st, err)
		}
		n, e := sys.Ppoll([]sys.PollFd{{Fd: int32(fd), Events: sys.POLLIN}}, patience)
		if n != 1 || e != 0 {
			return fmt.Errorf("no interrupt: %d, %w", n, e)
		}
		return d.SetInterrupt(0, -1)
	})
}

// testSecondOpen: a function is open once.
func testSecondOpen(ctx context.Context, address string, cfg pcie.VFIOConfig) error {
	d, err := pcie.OpenVFIO(ctx, address, cfg)
	if err == nil {
		err = d.Close()
	}
	if !errors.Is(err, pcie.ErrInUse) {
		return fmt.Errorf("opened twice: %w", err)
	}
	return nil
}

// hold reads registers until the function is gone, and closes it when it is told
// to.
func hold(ctx context.Context, address string) error {
	d, err := pcie.OpenVFIO(ctx, address, pcie.VFIOConfig{})
	if err != nil {
		return err
	}
	told := make(chan struct{})
	d.OnGone(func() { close(told) })
	fmt.Println("holding")
	for err == nil {
		_, err1 := d.Read32(0x1c)
		_, err2 := d.Read64(0)
		err = errors.Join(err1, err2, d.Write32(0x24, 0))
	}
	<-told
	if !errors.Is(err, pcie.ErrGone) || !d.Gone() {
		return errors.Join(err, d.Close())
	}
	fmt.Println("gone")
	var b [1]byte
	_, _ = os.Stdin.Read(b[:])
	return d.Close()
}
