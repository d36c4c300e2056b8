package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/qpoll/qpoll/internal/guest/assets"
	"github.com/qpoll/qpoll/internal/guest/initramfs"
	"github.com/qpoll/qpoll/internal/guest/kmod"
	"github.com/qpoll/qpoll/internal/guest/wire"
)

const portName = wire.PortName

// moduleDir is where modules are in the guest.
const moduleDir = "/lib/modules"

// baseTree is what every guest has.
func baseTree(set *assets.Set, agent []byte) (initramfs.Tree, error) {
	busybox, err := os.ReadFile(set.Busybox())
	if err != nil {
		return nil, err
	}
	t := initramfs.Tree{
		"/init":        {Data: agent, Perm: 0o755},
		"/bin/busybox": {Data: busybox, Perm: 0o755},
		"/dev/console": {Char: true, Major: 5, Minor: 1},
		"/dev/null":    {Char: true, Major: 1, Minor: 3, Perm: 0o666},
		"/etc/passwd":  {Data: []byte("root:x:0:0:root:/root:/bin/sh\n")},
		"/etc/group":   {Data: []byte("root:x:0:\n")},
		"/etc/hosts":   {Data: []byte("127.0.0.1 localhost\n")},
		"/sbin":        {Link: "bin"},
	}
	for _, d := range []string{"/proc", "/sys", "/tmp", "/run", "/root", "/mnt", "/lib/modules"} {
		t[d] = initramfs.Node{Dir: true}
	}
	for _, a := range set.Applets {
		t["/bin/"+filepath.Base(a)] = initramfs.Node{Link: "busybox"}
	}
	return t, nil
}

// addModules adds the named modules and what they need, and returns what the
// agent is to load.
func addModules(t initramfs.Tree, set *assets.Set, x *kmod.Index, modules []string) ([]wire.Module, error) {
	params := map[string]string{}
	var names []string
	for _, m := range modules {
		n, p := splitModule(m)
		names = append(names, n)
		params[kmod.Name(n)] = p
	}
	mods, err := x.Resolve(names...)
	if err != nil {
		return nil, err
	}
	out := make([]wire.Module, 0, len(mods))
	for _, m := range mods {
		b, err := os.ReadFile(filepath.Join(set.Modules(), m.File))
		if err != nil {
			return nil, err
		}
		p := moduleDir + "/" + m.Name + ".ko"
		t[p] = initramfs.Node{Data: b}
		out = append(out, wire.Module{Path: p, Params: params[m.Name]})
	}
	return out, nil
}

// addFiles adds files of the host.
func addFiles(t initramfs.Tree, files map[string]string) error {
	for to, from := range files {
		fi, err := os.Stat(from)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(to) {
			return fmt.Errorf("%w: file %q: the path in the guest must be absolute", ErrConfig, to)
		}
		t[filepath.Clean(to)] = initramfs.Node{Data: b, Perm: uint32(fi.Mode().Perm())}
	}
	return nil
}

// writeImage writes the initial root file system of a guest.
func writeImage(path string, c *Config, set *assets.Set, x *kmod.Index, agent []byte) (err error) {
	t, err := baseTree(set, agent)
	if err != nil {
		return err
	}
	var spec wire.BootSpec
	modules := c.Modules
	if c.NICs > 0 {
		modules = append([]string{"virtio_net"}, modules...)
	}
	if spec.Modules, err = addModules(t, set, x, modules); err != nil {
		return err
	}
	for i := range c.NICs {
		n := wire.Interface{MAC: nicMAC(i), CIDR: guestAddr(i) + "/24"}
		if i == 0 {
			n.Gateway = hostAddr(0)
		}
		spec.Interfaces = append(spec.Interfaces, n)
	}
	b, err := json.Marshal(&spec)
	if err != nil {
		return err
	}
	t[wire.BootSpecPath] = initramfs.Node{Data: b}
	if err := addFiles(t, c.Files); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := t.Write(w); err != nil {
		return err
	}
	return w.Flush()
}
