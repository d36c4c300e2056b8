package kmod

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

var index = fstest.MapFS{
	"modules.dep": {Data: []byte(`kernel/fs/configfs/configfs.ko:
kernel/drivers/nvme/target/nvmet.ko.xz: kernel/fs/configfs/configfs.ko
kernel/drivers/nvme/target/nvmet-tcp.ko: kernel/drivers/nvme/target/nvmet.ko.xz kernel/fs/configfs/configfs.ko
kernel/lib/libcrc32c.ko:
kernel/arch/x86/crypto/crc32c-intel.ko:
kernel/crypto/a.ko: kernel/crypto/b.ko
kernel/crypto/b.ko: kernel/crypto/a.ko
kernel/crypto/c.ko:
kernel/crypto/d.ko:
`)},
	"modules.builtin": {Data: []byte("kernel/drivers/char/virtio_console.ko\n")},
	"modules.softdep": {Data: []byte(`# Soft dependencies extracted from modules themselves.
softdep libcrc32c post: nothing pre: crc32c no-such-module virtio-console
softdep c pre: d
softdep d pre: c
`)},
	"modules.alias": {Data: []byte(`# Aliases extracted from modules themselves.
alias crc32c crc32c_intel
alias crc32c something_else
alias pci:v*d*sv*sd*bc01sc08i02* nvme
`)},
}

func load(t *testing.T) *Index {
	t.Helper()
	x, err := Load(index)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"nvme-tcp": "nvme_tcp", "kernel/a/nvme-tcp.ko": "nvme_tcp", "a/b.ko.xz": "b", "b.ko.zst": "b", "c_d": "c_d",
	} {
		if got := Name(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	x := load(t)
	for _, c := range []struct{ in, want string }{
		{"configfs", "configfs"},
		{"nvmet-tcp", "configfs nvmet nvmet_tcp"},
		{"nvmet_tcp nvmet", "configfs nvmet nvmet_tcp"},
		{"nvmet nvmet-tcp configfs", "configfs nvmet nvmet_tcp"},
		{"virtio_console", ""},
		{"libcrc32c", "crc32c_intel libcrc32c"},
		{"crc32c", "crc32c_intel"},
		{"c d", "d c"},
		{"", ""},
	} {
		mods, err := x.Resolve(strings.Fields(c.in)...)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		var got []string
		for _, m := range mods {
			got = append(got, m.Name)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.in, s, c.want)
		}
	}
	mods, err := x.Resolve("nvmet")
	if err != nil || mods[1].File != "kernel/drivers/nvme/target/nvmet.ko.xz" {
		t.Errorf("got %+v, %v", mods, err)
	}
	if !x.Builtin("virtio-console") || x.Builtin("nvmet") {
		t.Error("Builtin is wrong")
	}
}

func TestResolveErrors(t *testing.T) {
	x := load(t)
	for in, want := range map[string]error{"nosuch": ErrUnknown, "nvme": ErrUnknown, "a": ErrCycle} {
		if mods, err := x.Resolve("configfs", in); !errors.Is(err, want) {
			t.Errorf("%s: got %v, %v", in, mods, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	with := func(name, data string) fstest.MapFS {
		m := fstest.MapFS{}
		for k, v := range index {
			m[k] = v
		}
		m[name] = &fstest.MapFile{Data: []byte(data)}
		return m
	}
	for _, c := range []struct{ name, data string }{
		{"modules.dep", "kernel/a.ko\n"}, {"modules.softdep", "softdep\n"}, {"modules.alias", "alias x\n"},
	} {
		if _, err := Load(with(c.name, c.data)); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s %q: got %v", c.name, c.data, err)
		}
	}
	if _, err := Load(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	// A dependency that the index does not list.
	x, err := Load(fstest.MapFS{
		"modules.dep":     {Data: []byte("a.ko: gone.ko\n")},
		"modules.builtin": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Resolve("a"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "needed by a") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("a.ko: b.ko\nb.ko:\n", "softdep a pre: b\n", "alias x a\n")
	f.Add("a.ko: a.ko\n", "softdep a pre: a", "alias a a\n")
	f.Fuzz(func(t *testing.T, dep, soft, alias string) {
		x, err := Load(fstest.MapFS{
			"modules.dep": {Data: []byte(dep)}, "modules.builtin": {},
			"modules.softdep": {Data: []byte(soft)}, "modules.alias": {Data: []byte(alias)},
		})
		if err != nil {
			return
		}
		for n := range x.file {
			mods, err := x.Resolve(n)
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, m := range mods {
				for _, d := range x.deps[m.Name] {
					if !seen[d] {
						t.Fatalf("%s comes before %s", m.Name, d)
					}
				}
				if seen[m.Name] {
					t.Fatalf("%s comes twice", m.Name)
				}
				seen[m.Name] = true
			}
		}
	})
}
