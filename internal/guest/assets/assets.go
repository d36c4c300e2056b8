// Package assets prepares, once per machine, what a test guest boots from: a
// kernel of Debian's, uncompressed, with its modules, and a static busybox. It
// keeps them in a cache directory, and nothing of them is installed on the
// machine.
package assets

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CacheEnv names the environment variable that overrides the cache directory.
const CacheEnv = "QPOLL_GUEST_CACHE"

// Command is the command that prepares the assets, run in the module.
const Command = "go run ./internal/guest/cmd/guest-assets"

// format changes when the layout of a set does; older sets are then ignored.
const format = 1

const (
	currentName  = "current" // file in the cache directory: name of the set in use
	manifestName = "manifest.json"
	kernelName   = "vmlinux"
	modulesName  = "modules"
	busyboxName  = "busybox"
)

// ErrMissing is returned when the assets have not been prepared.
var ErrMissing = errors.New("guest assets are not prepared: run " + Command)

// Set is one prepared set of assets. It is immutable.
type Set struct {
	Format  int      `json:"format"`
	Release string   `json:"release"` // kernel release, as in uname -r
	Package string   `json:"package"` // Debian package of the kernel
	Version string   `json:"version"` // its version
	Applets []string `json:"applets"` // names that busybox answers to

	dir string
}

// Kernel returns the path of the uncompressed kernel, an ELF file.
func (s *Set) Kernel() string { return filepath.Join(s.dir, kernelName) }

// Modules returns the path of the directory with the modules, uncompressed,
// and the files that depmod wrote.
func (s *Set) Modules() string { return filepath.Join(s.dir, modulesName) }

// Busybox returns the path of the static busybox.
func (s *Set) Busybox() string { return filepath.Join(s.dir, busyboxName) }

// Dir returns the cache directory: that of CacheEnv, or a directory in the
// user's cache. It need not exist.
func Dir() (string, error) {
	if d := os.Getenv(CacheEnv); d != "" {
		return filepath.Abs(d)
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("guest assets: no cache directory, set %s: %w", CacheEnv, err)
	}
	return filepath.Join(d, "qpoll", "guest"), nil
}

// Load returns the prepared set in the cache directory, or an error that wraps
// ErrMissing.
func Load() (*Set, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	return loadFrom(dir)
}

func loadFrom(dir string) (*Set, error) {
	name, err := os.ReadFile(filepath.Join(dir, currentName))
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrMissing, err)
	}
	set, err := readSet(filepath.Join(dir, filepath.Base(string(name))))
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrMissing, err)
	}
	return set, nil
}

// readSet checks that everything is there.
func readSet(dir string) (*Set, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	s := Set{dir: dir}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if s.Format != format {
		return nil, fmt.Errorf("set %s has format %d, want %d", dir, s.Format, format)
	}
	for _, p := range []string{s.Kernel(), s.Busybox(), filepath.Join(s.Modules(), "modules.dep")} {
		if _, err := os.Stat(p); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// writeSet writes the manifest, which is the last step in making a set.
func writeSet(s *Set) error {
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, manifestName), append(b, '\n'), 0o644)
}

// install moves a finished set into the cache directory and makes it current.
// It replaces a set of the same name. Both moves are atomic, so another process
// sees the old set or the new one.
func install(s *Set, dir, name string) (*Set, error) {
	final := filepath.Join(dir, name)
	if err := os.Rename(s.dir, final); err != nil {
		// There is one already. It is as good if it is complete.
		if old, rerr := readSet(final); rerr == nil {
			return old, setCurrent(dir, name)
		}
		if err := os.RemoveAll(final); err != nil {
			return nil, err
		}
		if err := os.Rename(s.dir, final); err != nil {
			return nil, err
		}
	}
	if err := setCurrent(dir, name); err != nil {
		return nil, err
	}
	return readSet(final)
}

func setCurrent(dir, name string) error {
	f, err := os.CreateTemp(dir, ".current-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(name)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, currentName))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
