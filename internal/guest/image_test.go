package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/qpoll/qpoll/internal/guest/assets"
	"github.com/qpoll/qpoll/internal/guest/initramfs"
	"github.com/qpoll/qpoll/internal/guest/kmod"
	"github.com/qpoll/qpoll/internal/guest/wire"
)

func testIndex(t *testing.T) *kmod.Index {
	t.Helper()
	x, err := kmod.Load(fstest.MapFS{
		"modules.dep":     {Data: []byte("k/virtio_net.ko: k/failover.ko\nk/failover.ko:\nk/null-blk.ko:\n")},
		"modules.builtin": {Data: []byte("k/built-in.ko\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// testSet makes assets whose files have their own names as content.
func testSet(t *testing.T) *assets.Set {
	t.Helper()
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	for name, data := range map[string]string{
		"manifest.json": `{"format": 1, "release": "6.12.0", "applets": ["sh", "[", "sbin/ip"]}`,
		"vmlinux":       "vmlinux", "busybox": "busybox", "modules/modules.dep": "x",
		"modules/k/virtio_net.ko": "virtio_net", "modules/k/failover.ko": "failover", "modules/k/null-blk.ko": "null-blk",
	} {
		p := filepath.Join(set, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "current"), []byte("set"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(assets.CacheEnv, dir)
	s, err := assets.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTreeOfModules(t *testing.T) {
	set, x := testSet(t), testIndex(t)
	tree := initramfs.Tree{}
	mods, err := addModules(tree, set, x, []string{"null_blk nr_devices=0", "virtio-net", "built_in"})
	if err != nil {
		t.Fatal(err)
	}
	want := []wire.Module{
		{Path: "/lib/modules/null_blk.ko", Params: "nr_devices=0"},
		{Path: "/lib/modules/failover.ko"}, {Path: "/lib/modules/virtio_net.ko"},
	}
	if len(mods) != len(want) {
		t.Fatalf("got %+v", mods)
	}
	for i, m := range mods {
		if m != want[i] || len(tree[m.Path].Data) == 0 {
			t.Errorf("got %+v, want %+v", m, want[i])
		}
	}
	if _, err := addModules(tree, set, x, []string{"nothing"}); !errors.Is(err, kmod.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestImage(t *testing.T) {
	set, x := testSet(t), testIndex(t)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!program"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := Config{NICs: 2, Files: map[string]string{"/opt/program": program}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "initrd")
	if err := writeImage(path, &c, set, x, []byte("the agent")); err != nil {
		t.Fatal(err)
	}
	img, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(&wire.BootSpec{
		Modules: []wire.Module{{Path: "/lib/modules/failover.ko"}, {Path: "/lib/modules/virtio_net.ko"}},
		Interfaces: []wire.Interface{
			{MAC: "52:54:00:71:70:00", CIDR: "10.0.2.15/24", Gateway: "10.0.2.2"},
			{MAC: "52:54:00:71:70:01", CIDR: "10.0.3.15/24"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"init\x00", "the agent", "bin/sh\x00", "bin/[\x00", "bin/ip\x00", "dev/console\x00", "#!program", string(spec)} {
		if !bytes.Contains(img, []byte(want)) {
			t.Errorf("the image lacks %q", want)
		}
	}
	c.Files = map[string]string{"relative": program}
	if err := writeImage(path, &c, set, x, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("relative path: %v", err)
	}
	c.Files = map[string]string{"/x": "/no/such/file"}
	if err := writeImage(path, &c, set, x, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}
