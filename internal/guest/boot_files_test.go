//go:build guest

package guest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/kmod"
)

func testFiles(t *testing.T, g *Guest) {
	ctx := t.Context()
	var b Batch
	b.MkdirAll("/tmp/a/b")
	b.Write("/tmp/a/b/x", "x file")
	b.Symlink("b/x", "/tmp/a/link")
	if err := g.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if s, err := g.ReadFile(ctx, "/tmp/a/link"); s != "x file" || err != nil {
		t.Errorf("read %q, %v", s, err)
	}
	if s, err := g.Readlink(ctx, "/tmp/a/link"); s != "b/x" || err != nil {
		t.Errorf("link %q, %v", s, err)
	}
	if n, err := g.List(ctx, "/tmp/a"); strings.Join(n, " ") != "b link" || err != nil {
		t.Errorf("list %q, %v", n, err)
	}
	files, err := g.Glob(ctx, "/tmp/a/*", "/tmp/a/b/*")
	if err != nil || len(files) != 3 || files["/tmp/a/b/x"].Data != "x file" || files["/tmp/a/link"].Link != "b/x" {
		t.Errorf("glob %v, %v", files, err)
	}
	testFileErrors(t, g)
}

func testFileErrors(t *testing.T, g *Guest) {
	ctx := t.Context()
	var b Batch
	b.Write("/tmp/before", "1")
	b.Mkdir("/tmp/no/such/parent")
	b.Write("/tmp/after", "1")
	var pe *fs.PathError
	if err := g.Apply(ctx, &b); !errors.Is(err, syscall.ENOENT) || !errors.As(err, &pe) || pe.Path != "/tmp/no/such/parent" {
		t.Errorf("got %v", err)
	}
	for path, want := range map[string]bool{"/tmp/before": true, "/tmp/after": false} {
		if ok, err := g.Exists(ctx, path); ok != want || err != nil {
			t.Errorf("%s exists: %v, %v", path, ok, err)
		}
	}
	if err := g.WriteFile(ctx, "/proc/version", "x"); err == nil {
		t.Error("a read-only file could be written")
	}
	if _, err := g.ReadFile(ctx, "/proc/kcore"); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a huge file: %v", err)
	}
	if err := g.Upload(ctx, strings.NewReader("x"), "/proc/version/x", 0o644); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("upload to a bad place: %v", err)
	}
	if err := g.Fetch(ctx, "/nothing", io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("fetch of nothing: %v", err)
	}
}

func testUpload(t *testing.T, g *Guest) {
	want := pattern(5<<20 + 3)
	if err := g.Upload(t.Context(), bytes.NewReader(want), "/tmp/new/dir/file", 0o640); err != nil {
		t.Fatal(err)
	}
	if got := g.Shell(t, "stat -c '%a %s' /tmp/new/dir/file"); got != "640 "+strconv.Itoa(len(want)) {
		t.Errorf("stat: %q", got)
	}
	var got bytes.Buffer
	if err := g.Fetch(t.Context(), "/tmp/new/dir/file", &got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d of %d bytes came back, %v", got.Len(), len(want), err)
	}
}

func testModules(t *testing.T, g *Guest) {
	ctx := t.Context()
	loaded := func(name string) bool {
		t.Helper()
		s, err := g.ReadFile(ctx, "/proc/modules")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains("\n"+s, "\n"+name+" ")
	}
	for _, m := range []string{"null_blk", "configfs", "virtio_net"} {
		if !loaded(m) {
			t.Errorf("%s is not loaded", m)
		}
	}
	// With a parameter, with what it needs, twice.
	for range 2 {
		if err := g.LoadModule(ctx, "brd", "rd_nr=1 rd_size=1024"); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := g.ReadAttr(ctx, "/sys/block/ram0/size"); s != "2048" || err != nil {
		t.Errorf("size of the RAM disk: %q, %v", s, err)
	}
	if err := g.LoadModule(ctx, "nvmet-tcp", ""); err != nil || !loaded("nvmet") || !loaded("nvmet_tcp") {
		t.Errorf("nvmet-tcp: %v", err)
	}
	// Built in.
	if err := g.LoadModule(ctx, "virtio_console", ""); err != nil {
		t.Error(err)
	}
	if err := g.LoadModule(ctx, "no_such_module", ""); !errors.Is(err, kmod.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}
