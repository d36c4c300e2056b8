package assets

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// newSet makes a complete set in a new directory inside dir.
func newSet(t *testing.T, dir, release string) *Set {
	t.Helper()
	tmp, err := os.MkdirTemp(dir, ".new-*")
	if err != nil {
		t.Fatal(err)
	}
	s := &Set{Format: format, Release: release, dir: tmp}
	for _, f := range []string{s.Kernel(), s.Busybox(), filepath.Join(s.Modules(), "modules.dep")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(release), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSet(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInstallAndLoad(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(CacheEnv, dir)
	if _, err := Load(); !errors.Is(err, ErrMissing) {
		t.Fatalf("empty cache: %v", err)
	}
	for _, release := range []string{"6.12.1", "6.12.2"} {
		if _, err := install(newSet(t, dir, release), dir, "set-"+release); err != nil {
			t.Fatal(err)
		}
		s, err := Load()
		if err != nil || s.Release != release {
			t.Fatalf("got %+v, %v", s, err)
		}
		if b, err := os.ReadFile(s.Kernel()); err != nil || string(b) != release {
			t.Errorf("kernel %q, %v", b, err)
		}
	}
}

func TestInstallOverOld(t *testing.T) {
	dir := t.TempDir()
	if _, err := install(newSet(t, dir, "1"), dir, "set"); err != nil {
		t.Fatal(err)
	}
	// A complete one stays, as another process may have made it meanwhile.
	s, err := install(newSet(t, dir, "2"), dir, "set")
	if err != nil || s.Release != "1" {
		t.Errorf("got %+v, %v", s, err)
	}
	// A broken one goes.
	if err := os.Remove(s.Kernel()); err != nil {
		t.Fatal(err)
	}
	if s, err = install(newSet(t, dir, "3"), dir, "set"); err != nil || s.Release != "3" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestLoadIncomplete(t *testing.T) {
	dir := t.TempDir()
	s, err := install(newSet(t, dir, "1"), dir, "set")
	if err != nil {
		t.Fatal(err)
	}
	s.Format = format + 1
	if err := writeSet(s); err != nil {
		t.Fatal(err)
	}
	if _, err := loadFrom(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("another format: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, manifestName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadFrom(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("broken manifest: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, currentName), []byte("../../etc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadFrom(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("a name that leads out: %v", err)
	}
}

func TestDir(t *testing.T) {
	t.Setenv(CacheEnv, "")
	t.Setenv("XDG_CACHE_HOME", "/var/cache/someone")
	if d, err := Dir(); d != "/var/cache/someone/qpoll/guest" || err != nil {
		t.Errorf("got %q, %v", d, err)
	}
	t.Setenv(CacheEnv, "/elsewhere")
	if d, err := Dir(); d != "/elsewhere" || err != nil {
		t.Errorf("got %q, %v", d, err)
	}
}

func TestKernelDependency(t *testing.T) {
	for _, c := range []struct {
		out, pkg string
		ok       bool
	}{
		{"linux-image-6.12-cloud-amd64\n  Depends: linux-image-6.12.117+deb12-cloud-amd64\n", "linux-image-6.12.117+deb12-cloud-amd64", true},
		{"linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-48-cloud-amd64\n", "linux-image-6.1.0-48-cloud-amd64", false},
		{"x\n  Depends: something\n  Depends: linux-image-7.0-amd64\n", "linux-image-7.0-amd64", true},
		{"x\n  Depends: linux-image-5.99-amd64\n", "linux-image-5.99-amd64", false},
		{"x\n  Depends: linux-image-99999999999999999999.1-amd64\n", "linux-image-99999999999999999999.1-amd64", false},
		{"x\n  Depends: <linux-image>\n", "", false},
		{"", "", false},
	} {
		if pkg, ok := kernelDependency(c.out); pkg != c.pkg || ok != c.ok {
			t.Errorf("%q: got %q, %v", c.out, pkg, ok)
		}
	}
}
