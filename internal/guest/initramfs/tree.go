package initramfs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
)

// Node is an entry of a Tree.
type Node struct {
	Data         []byte
	Perm         uint32
	Link         string // target: the node is a symbolic link
	Dir          bool
	Char         bool // character device, with Major and Minor
	Major, Minor uint32
}

// Tree is a root file system: absolute paths and what is there. Directories
// that lead to a node need no node of their own.
type Tree map[string]Node

// Write writes the tree as an archive, sorted by path.
func (t Tree) Write(w io.Writer) error {
	all := make(Tree, len(t))
	for p, n := range t {
		c := path.Clean("/" + p)
		if _, dup := all[c]; dup {
			return fmt.Errorf("%w: %q twice", ErrName, p)
		}
		all[c] = n
	}
	for p := range maps.Clone(all) {
		for d := path.Dir(p); d != "/"; d = path.Dir(d) {
			n, ok := all[d]
			if !ok {
				all[d] = Node{Dir: true, Perm: 0o755}
			} else if !n.Dir {
				return fmt.Errorf("%w: %q is below %q, which is no directory", ErrName, p, d)
			}
		}
	}
	delete(all, "/")
	cw := NewWriter(w)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if err := all[p].write(cw, p); err != nil {
			return err
		}
	}
	return cw.Close()
}

func (n Node) write(w *Writer, p string) error {
	switch {
	case n.Dir:
		return w.Dir(p, cmp.Or(n.Perm, 0o755))
	case n.Char:
		return w.CharDevice(p, cmp.Or(n.Perm, 0o600), n.Major, n.Minor)
	case n.Link != "":
		return w.Symlink(p, n.Link)
	}
	return w.File(p, cmp.Or(n.Perm, 0o644), n.Data)
}
