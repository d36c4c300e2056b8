package mpath

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// FS returns the attributes of the head as a tree of files, each of one value and
// a newline, as in the kernel's sysfs: those of the head in the root, and those of
// each path in a directory of its name. A file holds what the value was when it
// was opened. See SetAttribute for writing. Any goroutine.
func (h *Head) FS() fs.FS { return attrFS{h} }

type attrFS struct{ h *Head }

var (
	_ fs.ReadDirFS  = attrFS{}
	_ fs.ReadFileFS = attrFS{}
)

// Open implements fs.FS.
func (f attrFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if list, ok := f.list(name); ok {
		return &attrDir{attrInfo: attrInfo{name: base(name), dir: true}, list: list}, nil
	}
	a, err := f.h.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	text := text(a)
	return &attrFile{attrInfo: info(a, len(text)), Reader: bytes.NewReader(text)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (f attrFS) ReadFile(name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	if _, ok := file.(*attrDir); ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return io.ReadAll(file)
}

// ReadDir implements fs.ReadDirFS.
func (f attrFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if list, ok := f.list(name); ok {
		return list, nil
	}
	return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
}

// list returns the entries of a directory.
func (f attrFS) list(name string) (list []fs.DirEntry, ok bool) {
	add := func(attrs []attribute) {
		for _, a := range attrs {
			list = append(list, info(a, len(text(a))))
		}
	}
	if name == "." {
		add(f.h.attributes())
		for _, p := range f.h.Paths() {
			list = append(list, attrInfo{name: p.name, dir: true})
		}
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return list, true
	}
	for _, p := range f.h.Paths() {
		if p.name == name {
			add(p.attributes())
			return list, true
		}
	}
	return nil, false
}

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func text(a attribute) []byte { return []byte(a.get() + "\n") }

// attrInfo describes a file or a directory.
type attrInfo struct {
	name string
	size int
	dir  bool
	set  bool
}

func info(a attribute, size int) attrInfo {
	return attrInfo{name: a.name, size: size, set: a.set != nil}
}

func (i attrInfo) Name() string               { return i.name }
func (i attrInfo) Size() int64                { return int64(i.size) }
func (i attrInfo) ModTime() time.Time         { return time.Time{} }
func (i attrInfo) IsDir() bool                { return i.dir }
func (i attrInfo) Sys() any                   { return nil }
func (i attrInfo) Type() fs.FileMode          { return i.Mode().Type() }
func (i attrInfo) Info() (fs.FileInfo, error) { return i, nil }

// Mode is that of the kernel's attributes.
func (i attrInfo) Mode() fs.FileMode {
	switch {
	case i.dir:
		return fs.ModeDir | 0o555
	case i.set:
		return 0o644
	}
	return 0o444
}

// attrFile is an attribute that was opened.
type attrFile struct {
	attrInfo
	*bytes.Reader
}

func (f *attrFile) Stat() (fs.FileInfo, error) { return f.attrInfo, nil }
func (f *attrFile) Close() error               { return nil }

// Size is that of the file, which its reader has one of, too.
func (f *attrFile) Size() int64 { return f.attrInfo.Size() }

// attrDir is a directory that was opened.
type attrDir struct {
	attrInfo
	list []fs.DirEntry
}

func (d *attrDir) Stat() (fs.FileInfo, error) { return d.attrInfo, nil }
func (d *attrDir) Close() error               { return nil }

// Read fails, as reading a directory does.
func (d *attrDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *attrDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		list := d.list
		d.list = nil
		return list, nil
	}
	if len(d.list) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.list))
	list := d.list[:n]
	d.list = d.list[n:]
	return list, nil
}
