package devmem

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// device is a mapped file that can be cut short.
func device(t testing.TB) (w mmio.Window, cut func()) {
	f, err := os.Create(filepath.Join(t.TempDir(), "bar"))
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	b, err := sys.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(sys.Munmap(b), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return mmio.NewWindow(b), func() {
		if err := f.Truncate(0); err != nil {
			t.Error(err)
		}
	}
}

func TestAccess(t *testing.T) {
	w, cut := device(t)
	if err := errors.Join(Write32(w, 8, 0x01020304), Write64(w, 16, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if v, err := Read32(w, 8); v != 0x01020304 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if v, err := Read64(w, 16); v != 1<<40 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if err := Write32(w, 3, 0); !errors.Is(err, mmio.ErrBounds) {
		t.Errorf("not aligned: %v", err)
	}
	cut()
	for range 100 {
		_, err1 := Read32(w, 8)
		_, err2 := Read64(w, 16)
		for _, err := range []error{err1, err2, Write32(w, 8, 1), Write64(w, 16, 1)} {
			if !errors.Is(err, ErrFault) {
				t.Fatalf("got %v", err)
			}
		}
	}
}

func TestRing(t *testing.T) {
	w, cut := device(t)
	sq, err1 := w.Register32(0)
	cq, err2 := w.Register32(4)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	var none mmio.Register32
	if !Ring(sq, 1, cq, 2) || sq.Load() != 1 || cq.Load() != 2 {
		t.Error("both")
	}
	if !Ring(none, 3, cq, 4) || !Ring(sq, 5, none, 6) || !Ring(none, 7, none, 8) || sq.Load() != 5 || cq.Load() != 4 {
		t.Error("one")
	}
	if n := testing.AllocsPerRun(100, func() { Ring(sq, 1, cq, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	cut()
	for range 100 {
		if Ring(sq, 1, cq, 2) || Ring(none, 1, cq, 2) {
			t.Fatal("stored to nothing")
		}
	}
}

// TestMany has goroutines fault while others use memory that is there and the
// collector runs.
func TestMany(t *testing.T) {
	w, cut := device(t)
	live, _ := device(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, err := Read32(w, 0); err != nil && !errors.Is(err, ErrFault) {
					t.Error(err)
				}
				if err := Write32(live, 0, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	cut()
	runtime.GC()
	wg.Wait()
	if _, err := Read32(w, 0); !errors.Is(err, ErrFault) {
		t.Errorf("got %v", err)
	}
}

// TestOthers: what is no fault of a device is not swallowed.
func TestOthers(t *testing.T) {
	mine := errors.New("mine")
	var got any
	func() {
		defer func() { got = recover() }()
		_ = access(func() error { panic(mine) })
	}()
	if got != mine {
		t.Errorf("a panic of another kind: %v", got)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = access(func() error { runtime.Goexit(); return nil })
		t.Error("went on after Goexit")
	}()
	<-done
	if err := access(func() error { return mine }); err != mine {
		t.Errorf("got %v", err)
	}
}

func BenchmarkRing(b *testing.B) {
	w, _ := device(b)
	sq, _ := w.Register32(0)
	cq, _ := w.Register32(4)
	for b.Loop() {
		Ring(sq, 1, cq, 2)
	}
}
