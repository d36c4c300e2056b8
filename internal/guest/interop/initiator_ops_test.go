//go:build guest

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
)

// testOps does what is neither read nor write.
func testOps(t *testing.T, k *kernelTarget) {
	ctx := t.Context()
	e := k.export(t, onePort, nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 64}})
	h := e.connect(t, 0, nvme.Config{IOQueues: 2})
	ns := h.namespace(t, 1)
	const block = 512
	m := pattern.NewModel(0, 4096, block)
	buf := make([]byte, 4096*block)
	gen := m.Begin(buf, 0)
	_, err := ns.WriteAt(buf, 0)
	check(t, err)
	m.Wrote(0, 4096, gen)
	check(t, ns.Flush(ctx))

	check(t, ns.WriteZeroes(ctx, 100*block, 1000*block))
	m.Wrote(100, 1000, 0)
	// One block more than one command's limit and then some, far from the rest.
	check(t, ns.WriteZeroes(ctx, 5000*block, 70000*block))
	readBack(t, ns, m)
	// What was deallocated reads as zeros from this backend.
	check(t, ns.Deallocate(ctx, 2048*block, 512*block))
	m.Wrote(2048, 512, 0)
	readBack(t, ns, m)
	for name, err := range map[string]error{
		"Compare": ns.CompareAt(ctx, buf[:block], 0),
		"Verify":  ns.Verify(ctx, 0, block),
	} {
		if !errors.Is(err, nvme.ErrUnsupported) {
			t.Errorf("%s, which the kernel's target does not offer: %v", name, err)
		}
	}
	t.Run("Ranges", func(t *testing.T) { testRanges(t, h, m) })
	t.Run("Blocking", func(t *testing.T) { testBlocking(t, ns) })
	t.Run("MediaError", func(t *testing.T) { testMediaError(t, e, h) })
}

// testRanges deallocates more ranges than one command takes, and does the other
// commands through the polled calls.
func testRanges(t *testing.T, h *host, m *pattern.Model) {
	p := newPoller(t, "ops")
	q := h.queue(t, 1, p)
	var ranges []nvme.DSMRange
	for i := range uint64(300) {
		ranges = append(ranges, nvme.DSMRange{LBA: 1100 + 3*i, Length: 2})
		m.Wrote(1100+3*i, 2, 0)
	}
	polled := func(what string, f func(done nvme.Done) error) {
		t.Helper()
		ended := make(chan nvme.Status, 1)
		var err error
		check(t, p.Call(t.Context(), func() { err = f(func(_ any, st nvme.Status) { ended <- st }) }))
		check(t, err)
		if st := <-ended; !st.OK() {
			t.Errorf("%s: %v", what, st)
		}
	}
	polled("Deallocate", func(done nvme.Done) error { return q.Deallocate(ranges, done, nil) })
	polled("Flush", func(done nvme.Done) error { return q.Flush(done, nil) })
	polled("Write Zeroes", func(done nvme.Done) error { return q.WriteZeroes(3000, 17, done, nil) })
	m.Wrote(3000, 17, 0)
	b := make([]byte, 64*m.Size)
	gen := m.Begin(b, 3500)
	polled("Write with FUA", func(done nvme.Done) error {
		return q.Issue(&nvme.IO{Op: nvme.OpWrite, FUA: true, LBA: 3500, Blocks: 64, Buf: b, Done: done})
	})
	m.Wrote(3500, 64, gen)
	readBack(t, h.namespace(t, 1), m)
}

// testBlocking uses the namespace as an io.ReaderAt and io.WriterAt from many
// goroutines.
func testBlocking(t *testing.T, ns *nvme.Namespace) {
	data := make([]byte, 3<<20)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(data)
	const base = 32 << 20
	var wg sync.WaitGroup
	const parts = 24
	errs := make([]error, parts)
	part := len(data) / parts
	for i := range parts {
		wg.Go(func() {
			off, b := int64(i*part), make([]byte, part)
			if _, err := ns.WriteAt(data[off:][:part], base+off); err != nil {
				errs[i] = err
				return
			}
			n, err := ns.ReadAt(b, base+off)
			if err == nil && (n != part || !bytes.Equal(b, data[off:][:part])) {
				err = fmt.Errorf("%d bytes at %d differ", n, off)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	got := make([]byte, len(data))
	_, err := io.ReadFull(io.NewSectionReader(ns, base, int64(len(data))), got)
	check(t, err)
	if !bytes.Equal(got, data) {
		t.Error("io.SectionReader reads something else")
	}
	b := make([]byte, 8192)
	if n, err := ns.ReadAt(b, ns.Size()-4096); n != 4096 || err != io.EOF {
		t.Errorf("read across the end: %d, %v", n, err)
	}
	if n, err := ns.ReadAt(b, ns.Size()); n != 0 || err != io.EOF {
		t.Errorf("read at the end: %d, %v", n, err)
	}
	if n, err := ns.WriteAt(b, ns.Size()-4096); n != 0 || !errors.Is(err, nvme.ErrOutOfRange) {
		t.Errorf("write across the end: %d, %v", n, err)
	}
	var ae *nvme.AlignmentError
	if _, err := ns.ReadAt(b[:100], 0); !errors.As(err, &ae) {
		t.Errorf("read of 100 bytes: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ns.ReadAtContext(gone, b, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("read with a context that has ended: %v", err)
	}
}

// testMediaError reads what the backend cannot.
func testMediaError(t *testing.T, e *exported, h *host) {
	e.add(t, nvmet.NamespaceConfig{NSID: 2, Backend: nvmet.NullBlk{MiB: 4, Attrs: map[string]string{"badblocks": "+80-95"}}})
	h.rec.waitChanged(t, 2)
	ns := h.namespace(t, 2)
	b := make([]byte, 16*512)
	for lba := int64(0); lba < 80; lba += 16 {
		_, err := ns.ReadAt(b, lba*512)
		check(t, err)
	}
	_, err := ns.ReadAt(b, 80*512)
	var st nvme.Status
	if !errors.As(err, &st) || st.IsPath() {
		t.Errorf("read of bad blocks: %v", err)
	}
	_, err = ns.ReadAt(b, 96*512)
	check(t, err)
}
