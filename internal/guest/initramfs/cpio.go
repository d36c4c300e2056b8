// Package initramfs writes archives that Linux unpacks as its initial root file
// system: cpio in the newc format, as described in
// Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
package initramfs

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// File types in the mode field, as in stat(2).
const (
	modeDir  = 0o040000
	modeChar = 0o020000
	modeFile = 0o100000
	modeLink = 0o120000
)

// trailer is the name of the entry that ends an archive.
const trailer = "TRAILER!!!"

// maxSize is the largest file that the eight hexadecimal digits of the size
// field hold.
const maxSize = 1<<32 - 1

// ErrName is returned for a name that an archive cannot hold.
var ErrName = errors.New("initramfs: bad name")

// ErrTooBig is returned for a file of 4 GiB or more.
var ErrTooBig = errors.New("initramfs: file too big")

// Writer writes an archive. The same calls give the same bytes: owner, group
// and times are zero, and inode numbers count up. It is not safe for
// concurrent use.
type Writer struct {
	w   io.Writer
	n   int64
	ino uint32
	err error
}

// NewWriter returns a Writer that writes to w. It does not buffer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Dir adds a directory. Parents must be added before their children; Tree does
// that by itself.
func (w *Writer) Dir(name string, perm uint32) error {
	return w.entry(name, modeDir|perm&0o7777, nil, 0, 0)
}

// File adds a regular file.
func (w *Writer) File(name string, perm uint32, data []byte) error {
	return w.entry(name, modeFile|perm&0o7777, data, 0, 0)
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(name, target string) error {
	return w.entry(name, modeLink|0o777, []byte(target), 0, 0)
}

// CharDevice adds a character device node.
func (w *Writer) CharDevice(name string, perm, major, minor uint32) error {
	return w.entry(name, modeChar|perm&0o7777, nil, major, minor)
}

// Close ends the archive. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.ino = 0
	return w.write(trailer, 0, 0, 1, nil, 0, 0)
}

func (w *Writer) entry(name string, mode uint32, data []byte, major, minor uint32) error {
	if w.err != nil {
		return w.err
	}
	clean := strings.TrimPrefix(name, "/")
	if clean == "" || clean == trailer || strings.ContainsRune(clean, 0) || strings.Contains("/"+clean+"/", "/../") {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	if int64(len(data)) > maxSize {
		return fmt.Errorf("%w: %s", ErrTooBig, name)
	}
	w.ino++
	nlink := uint32(1)
	if mode&modeDir == modeDir {
		nlink = 2
	}
	return w.write(clean, w.ino, mode, nlink, data, major, minor)
}

// write emits header, name and data, each padded to four bytes.
func (w *Writer) write(name string, ino, mode, nlink uint32, data []byte, major, minor uint32) error {
	h := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		ino, mode, 0, 0, nlink, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	w.put([]byte(h + name + "\x00"))
	w.pad()
	w.put(data)
	w.pad()
	return w.err
}

func (w *Writer) put(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	n, err := w.w.Write(b)
	w.n += int64(n)
	w.err = err
}

func (w *Writer) pad() { w.put(make([]byte, -w.n&3)) }
