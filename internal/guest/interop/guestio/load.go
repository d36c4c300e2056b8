//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
)

const (
	blockSize = 512
	// maxBlocks bounds a transfer. Buffers of 32 KiB and more begin at a page,
	// as direct I/O wants it.
	maxBlocks = 128
)

// loader is a load of several jobs, past the page cache. Each job has a strip
// of the device to itself, whose blocks are zeros in the beginning.
type loader struct {
	f    *os.File
	stop atomic.Bool
	ops  atomic.Uint64 // completed
}

// load runs jobs on the first n bytes of the device. It prints the number of
// operations as it grows, and ends on SIGTERM, after reading everything back.
func load(path string, jobs int, n uint64) error {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	strip := n / blockSize / uint64(max(jobs, 1))
	if strip < maxBlocks {
		return fmt.Errorf("%d bytes are too few for %d jobs", n, jobs)
	}
	l := &loader{f: f}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go l.watch(end)
	errs := make(chan error, jobs)
	var wg sync.WaitGroup
	for i := range uint64(jobs) {
		wg.Go(func() {
			if err := l.job(i, strip); err != nil {
				l.stop.Store(true)
				errs <- fmt.Errorf("job %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	fmt.Println("verified")
	return nil
}

// watch prints the progress and waits for the end.
func (l *loader) watch(end <-chan os.Signal) {
	tick := time.NewTicker(50 * time.Millisecond)
	for last := uint64(0); ; {
		select {
		case <-end:
			l.stop.Store(true)
			return
		case <-tick.C:
			if n := l.ops.Load(); n != last {
				fmt.Println(n)
				last = n
			}
		}
	}
}

func (l *loader) job(i, strip uint64) error {
	m := pattern.NewModel(i*strip, strip, blockSize)
	rng := rand.New(rand.NewPCG(i, 1))
	buf := make([]byte, maxBlocks*blockSize)
	for !l.stop.Load() {
		n := 1 + rng.Uint64N(maxBlocks)
		at := rng.Uint64N(strip - n + 1)
		b, off := buf[:n*blockSize], int64(m.LBA+at)*blockSize
		if rng.IntN(2) == 0 {
			gen := m.Begin(b, at)
			if _, err := l.f.WriteAt(b, off); err != nil {
				return err
			}
			m.Wrote(at, n, gen)
		} else if err := l.verify(m, b, at); err != nil {
			return err
		}
		l.ops.Add(1)
	}
	for at := uint64(0); at < strip; at += maxBlocks {
		if err := l.verify(m, buf[:min(maxBlocks, strip-at)*blockSize], at); err != nil {
			return fmt.Errorf("read back: %w", err)
		}
	}
	return nil
}

func (l *loader) verify(m *pattern.Model, b []byte, at uint64) error {
	for i := range b {
		b[i] = 0xa5 // what is not read must not look right
	}
	if _, err := l.f.ReadAt(b, int64(m.LBA+at)*blockSize); err != nil {
		return err
	}
	return m.Verify(b, at)
}
