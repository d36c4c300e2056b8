//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"syscall"

	"github.com/qpoll/qpoll/internal/guest/wire"
	"github.com/qpoll/qpoll/internal/sys/pid1"
)

func packError(err error) *wire.Error {
	e := &wire.Error{Msg: err.Error()}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		e.Op, e.Path = pe.Op, pe.Path
	case errors.As(err, &le):
		e.Op, e.Path = le.Op, le.New
	}
	var no syscall.Errno
	if e.Path != "" && errors.As(err, &no) {
		e.Errno = int(no)
	}
	return e
}

// runSteps runs the steps in order. On failure the result has the replies of
// the steps before.
func runSteps(steps []wire.Step) (*wire.Result, error) {
	res := &wire.Result{Replies: make([]wire.Reply, 0, len(steps))}
	for i := range steps {
		r, err := runStep(&steps[i])
		if err != nil {
			return res, err
		}
		res.Replies = append(res.Replies, r)
	}
	return res, nil
}

func runStep(s *wire.Step) (r wire.Reply, err error) {
	mode := func(def os.FileMode) os.FileMode {
		if s.Mode != 0 {
			return os.FileMode(s.Mode).Perm()
		}
		return def
	}
	switch s.Kind {
	case wire.StepMkdir:
		err = os.Mkdir(s.Path, mode(0o755))
	case wire.StepMkdirAll:
		err = os.MkdirAll(s.Path, mode(0o755))
	case wire.StepRemove:
		err = os.Remove(s.Path)
	case wire.StepRemoveAll:
		err = os.RemoveAll(s.Path)
	case wire.StepSymlink:
		err = os.Symlink(string(s.Data), s.Path)
	case wire.StepReadlink:
		var l string
		l, err = os.Readlink(s.Path)
		r.Data = []byte(l)
	case wire.StepWrite:
		err = os.WriteFile(s.Path, s.Data, mode(0o644))
	case wire.StepRead:
		r.Data, err = readBounded(s.Path)
	case wire.StepList:
		r.Names, err = list(s.Path)
	case wire.StepGlob:
		r.Files, err = glob(s.Path)
	case wire.StepTransact:
		r.Data, err = transact(s.Path, s.Data)
	case wire.StepInsmod:
		err = pid1.LoadModule(s.Path, string(s.Data))
	case wire.StepMount:
		err = pid1.Mount(string(s.Data), s.Path)
		if errors.Is(err, syscall.EBUSY) {
			err = nil
		}
	default:
		err = fmt.Errorf("unknown step %q", s.Kind)
	}
	return r, err
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, wire.MaxRead+1))
	if err == nil && len(b) > wire.MaxRead {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
	}
	return b, err
}

func list(path string) ([]string, error) {
	ents, err := os.ReadDir(path)
	names := make([]string, 0, len(ents))
	for _, e := range ents {
		names = append(names, e.Name())
	}
	sort.Strings(names)
	return names, err
}

// glob returns the matches with their contents. An attribute that goes away or
// cannot be read is there without content.
func glob(pattern string) (map[string]wire.File, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	files := make(map[string]wire.File, len(names))
	for _, n := range names {
		var f wire.File
		fi, err := os.Lstat(n)
		switch {
		case err != nil:
			continue
		case fi.Mode()&fs.ModeSymlink != 0:
			f.Link, _ = os.Readlink(n)
		case fi.Mode().IsRegular():
			f.Data, _ = readBounded(n)
		}
		files[n] = f
	}
	return files, nil
}

// transact writes a command to a device file and reads its answer, as
// /dev/nvme-fabrics wants it.
func transact(path string, data []byte) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	b := make([]byte, 4096)
	n, err := f.Read(b)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

func upload(st io.Reader, path string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	var buf []byte
	for {
		k, b, err := wire.ReadFrame(st, buf)
		switch {
		case err != nil:
			return err
		case k == wire.KindEOF:
			return f.Close()
		case k != wire.KindData:
			return fmt.Errorf("upload: frame of kind %d", k)
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
		buf = b
	}
}

func fetch(st io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, wire.MaxData)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if werr := wire.WriteFrame(st, wire.KindData, buf[:n]); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
