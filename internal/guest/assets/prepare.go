package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Options tells Prepare what to do. The zero value is usable.
type Options struct {
	Log io.Writer // progress and the output of commands; nil: discarded
	// Refresh makes a new set even where there is one, which then has the
	// newest kernel that Debian offers.
	Refresh bool
}

// Prepare makes sure that the packages that guests need are installed, and that
// there is a set of assets in the cache directory. It is quick when both are
// there already. It runs apt-get, as root, for what is missing.
func Prepare(ctx context.Context, o Options) (*Set, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	p := preparer{ctx: ctx, log: o.Log, dir: dir}
	if err := p.installPackages(); err != nil {
		return nil, err
	}
	if !o.Refresh {
		if s, err := loadFrom(dir); err == nil {
			return s, nil
		}
	}
	return p.makeSet()
}

type preparer struct {
	ctx     context.Context
	log     io.Writer
	dir     string
	updated bool // apt-get update has run
}

func (p *preparer) makeSet() (*Set, error) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(p.dir, ".new-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := p.update(); err != nil {
		return nil, err
	}
	pkg, err := p.kernelPackage()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(tmp, "root")
	version, err := p.unpack(filepath.Join(tmp, "debs"), root, pkg, "busybox-static")
	if err != nil {
		return nil, err
	}
	s := &Set{
		Format: format, Package: pkg, Version: version,
		Release: strings.TrimPrefix(pkg, "linux-image-"),
		dir:     filepath.Join(tmp, "set"),
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, err
	}
	for _, step := range []func(*Set, string) error{p.takeKernel, p.takeModules, p.takeBusybox} {
		if err := step(s, root); err != nil {
			return nil, fmt.Errorf("guest assets: %s: %w", pkg, err)
		}
	}
	if err := writeSet(s); err != nil {
		return nil, err
	}
	return install(s, p.dir, fmt.Sprintf("%s_%s_f%d", pkg, strings.ReplaceAll(version, ":", "_"), format))
}

func (p *preparer) takeKernel(s *Set, root string) error {
	img, err := os.ReadFile(filepath.Join(root, "boot", "vmlinuz-"+s.Release))
	if err != nil {
		return err
	}
	data, command, size, err := payload(img)
	if err != nil {
		return err
	}
	elf, err := p.run(bytes.NewReader(data), command...)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(elf, []byte("\x7fELF")) || (size != 0 && int(size) != len(elf)) {
		return fmt.Errorf("%w: payload gives %d bytes, want an ELF file of %d", ErrKernelImage, len(elf), size)
	}
	return os.WriteFile(s.Kernel(), elf, 0o644)
}

// takeModules decompresses all modules, so that the kernel's module loader
// takes them as they are, and lets depmod write its index.
func (p *preparer) takeModules(s *Set, root string) error {
	from := ""
	for _, d := range []string{"lib/modules", "usr/lib/modules"} {
		if _, err := os.Stat(filepath.Join(root, d, s.Release)); err == nil {
			from = filepath.Join(root, d, s.Release)
			break
		}
	}
	if from == "" {
		return errors.New("no modules in the package")
	}
	tools := map[string][]string{".xz": {"xz", "-d"}, ".zst": {"zstd", "-d", "-q", "--rm"}, ".gz": {"gzip", "-d"}}
	files := map[string][]string{}
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && tools[ext] != nil {
			files[ext] = append(files[ext], path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for ext, all := range files {
		// A command line has room for a few hundred paths.
		for len(all) > 0 {
			n := min(len(all), 200)
			if _, err := p.run(nil, append(tools[ext], all[:n]...)...); err != nil {
				return err
			}
			all = all[n:]
		}
	}
	// depmod wants the tree as it would be installed.
	tree := filepath.Join(root, "depmod")
	home := filepath.Join(tree, "lib", "modules", s.Release)
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	if err := os.Rename(from, home); err != nil {
		return err
	}
	if _, err := p.run(nil, "depmod", "-b", tree, s.Release); err != nil {
		return err
	}
	return os.Rename(home, s.Modules())
}

func (p *preparer) takeBusybox(s *Set, root string) error {
	for _, n := range []string{"bin/busybox", "usr/bin/busybox"} {
		if os.Rename(filepath.Join(root, n), s.Busybox()) == nil {
			break
		}
	}
	out, err := p.run(nil, s.Busybox(), "--list")
	if err != nil {
		return err
	}
	for _, a := range strings.Fields(string(out)) {
		// The list has busybox itself; a link there would replace it.
		if a != "busybox" {
			s.Applets = append(s.Applets, a)
		}
	}
	if len(s.Applets) < 100 {
		return fmt.Errorf("busybox has %d applets only", len(s.Applets))
	}
	return nil
}
