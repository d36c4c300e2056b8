package load

import (
	"errors"
	"testing"
)

// The buffers of a queue come in one piece from where the workload says.
func TestAlloc(t *testing.T) {
	wl := Workload{Bytes: 512, Jobs: 3, ReadPercent: 100}
	var given []byte
	wl.Alloc = func(n int) ([]byte, error) {
		given = make([]byte, n)
		return given, nil
	}
	w, err := newWorker(&fakeQueue{blockSize: 512, blocks: 1000}, &wl, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(given) != 3*512 {
		t.Fatalf("%d bytes were asked for", len(given))
	}
	for i := range w.jobs {
		if b := w.jobs[i].buf; len(b) != 512 || cap(b) != 512 || &b[0] != &given[i*512] || b[0] == 0 {
			t.Errorf("job %d has %d bytes, of %d, that begin with %d", i, len(b), cap(b), b[0])
		}
	}
	want := errors.New("no memory")
	wl.Alloc = func(int) ([]byte, error) { return nil, want }
	if _, err := newWorker(&fakeQueue{blockSize: 512, blocks: 1000}, &wl, 0); !errors.Is(err, want) || !errors.Is(err, ErrBuffers) {
		t.Errorf("error %v", err)
	}
}
