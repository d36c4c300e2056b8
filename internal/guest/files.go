package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/qpoll/qpoll/internal/guest/wire"
)

// Batch is a list of file operations that the agent carries out in order, in
// one round trip. They are plain system calls in the guest, without a shell. The
// zero value is empty.
type Batch struct{ steps []wire.Step }

func (b *Batch) add(k wire.StepKind, path string, data []byte) {
	b.steps = append(b.steps, wire.Step{Kind: k, Path: path, Data: data})
}

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.steps) }

// Mkdir makes one directory, which must not exist.
func (b *Batch) Mkdir(path string) { b.add(wire.StepMkdir, path, nil) }

// MkdirAll makes a directory and its parents where they are missing.
func (b *Batch) MkdirAll(path string) { b.add(wire.StepMkdirAll, path, nil) }

// Write writes a file, as one write system call: what attributes of configfs
// and sysfs want. It creates or truncates the file.
func (b *Batch) Write(path, data string) { b.add(wire.StepWrite, path, []byte(data)) }

// Symlink makes the symbolic link path, which leads to target.
func (b *Batch) Symlink(target, path string) { b.add(wire.StepSymlink, path, []byte(target)) }

// Remove removes a file, a link or an empty directory.
func (b *Batch) Remove(path string) { b.add(wire.StepRemove, path, nil) }

// RemoveAll removes a tree. It is no error if there is none.
func (b *Batch) RemoveAll(path string) { b.add(wire.StepRemoveAll, path, nil) }

// String lists the operations, one a line, as a shell would have them.
func (b *Batch) String() string {
	var s strings.Builder
	for _, st := range b.steps {
		switch st.Kind {
		case wire.StepWrite:
			fmt.Fprintf(&s, "write %s %q\n", st.Path, st.Data)
		case wire.StepSymlink:
			fmt.Fprintf(&s, "symlink %s -> %s\n", st.Path, st.Data)
		default:
			fmt.Fprintf(&s, "%s %s\n", st.Kind, st.Path)
		}
	}
	return s.String()
}

// Apply carries out a batch. It stops at the first operation that fails; the
// error then is an *fs.PathError with the guest's errno. What was done before
// stays.
func (g *Guest) Apply(ctx context.Context, b *Batch) error {
	if b.Len() == 0 {
		return nil
	}
	_, err := g.steps(ctx, b.steps...)
	return err
}

func (g *Guest) steps(ctx context.Context, s ...wire.Step) ([]wire.Reply, error) {
	res, err := g.call(ctx, &wire.Request{Op: wire.OpSteps, Steps: s})
	if err != nil {
		return nil, err
	}
	if len(res.Replies) != len(s) {
		return nil, fmt.Errorf("guest: %d replies to %d steps", len(res.Replies), len(s))
	}
	return res.Replies, nil
}

func (g *Guest) step(ctx context.Context, k wire.StepKind, path string, data []byte) (wire.Reply, error) {
	r, err := g.steps(ctx, wire.Step{Kind: k, Path: path, Data: data})
	if err != nil {
		return wire.Reply{}, err
	}
	return r[0], nil
}

// WriteFile writes a file as one write system call, as Batch.Write does.
func (g *Guest) WriteFile(ctx context.Context, path, data string) error {
	_, err := g.step(ctx, wire.StepWrite, path, []byte(data))
	return err
}

// ReadFile returns the content of a file of at most 256 KiB, such as an
// attribute in sysfs.
func (g *Guest) ReadFile(ctx context.Context, path string) (string, error) {
	r, err := g.step(ctx, wire.StepRead, path, nil)
	return string(r.Data), err
}

// ReadAttr is ReadFile without white space at both ends.
func (g *Guest) ReadAttr(ctx context.Context, path string) (string, error) {
	s, err := g.ReadFile(ctx, path)
	return strings.TrimSpace(s), err
}

// Readlink returns the target of a symbolic link.
func (g *Guest) Readlink(ctx context.Context, path string) (string, error) {
	r, err := g.step(ctx, wire.StepReadlink, path, nil)
	return string(r.Data), err
}

// List returns the names in a directory, sorted.
func (g *Guest) List(ctx context.Context, path string) ([]string, error) {
	r, err := g.step(ctx, wire.StepList, path, nil)
	return r.Names, err
}

// Exists tells whether there is a file, directory or link at the path, which
// must have no pattern characters.
func (g *Guest) Exists(ctx context.Context, path string) (bool, error) {
	f, err := g.Glob(ctx, path)
	return len(f) > 0, err
}

// GlobFile is a match of Glob.
type GlobFile struct {
	Data string // content, for a regular file that can be read; without white space at both ends
	Link string // target, for a symbolic link
}

// Glob returns the files that match any of the patterns (see path/filepath.Match)
// with what is in them, by path: a snapshot of a piece of sysfs in one round trip.
func (g *Guest) Glob(ctx context.Context, patterns ...string) (map[string]GlobFile, error) {
	s := make([]wire.Step, len(patterns))
	for i, p := range patterns {
		s[i] = wire.Step{Kind: wire.StepGlob, Path: p}
	}
	replies, err := g.steps(ctx, s...)
	if err != nil {
		return nil, err
	}
	all := map[string]GlobFile{}
	for _, r := range replies {
		for p, f := range r.Files {
			all[p] = GlobFile{Data: strings.TrimSpace(string(f.Data)), Link: f.Link}
		}
	}
	return all, nil
}

// Transact writes a command to a device file and returns what can then be read
// from the same open file.
func (g *Guest) Transact(ctx context.Context, path, command string) (string, error) {
	r, err := g.step(ctx, wire.StepTransact, path, []byte(command))
	return string(r.Data), err
}

// Upload copies from r to a file in the guest, with the permission bits, and
// makes missing directories. Files live in memory there.
func (g *Guest) Upload(ctx context.Context, r io.Reader, path string, perm fs.FileMode) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	s, err := g.open(ctx, &wire.Request{Op: wire.OpUpload, Path: path, Mode: uint32(perm.Perm())})
	if err != nil {
		return err
	}
	defer s.close()
	buf := make([]byte, wire.MaxData)
	for {
		n, rerr := r.Read(buf)
		if n > 0 {
			// The agent ends the stream early only after an error, which
			// the result then tells.
			if s.send(wire.KindData, buf[:n]) != nil {
				break
			}
		}
		if errors.Is(rerr, io.EOF) {
			_ = s.send(wire.KindEOF, nil)
			break
		}
		if rerr != nil {
			return rerr
		}
	}
	res, err := s.result(nil, nil)
	if err != nil {
		return err
	}
	return res.Err.Unpack()
}

// UploadFile copies a file of the host into the guest, with its permission bits.
func (g *Guest) UploadFile(ctx context.Context, from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return g.Upload(ctx, f, to, fi.Mode())
}

// Fetch copies a file of the guest, of any size, to w.
func (g *Guest) Fetch(ctx context.Context, path string, w io.Writer) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	s, err := g.open(ctx, &wire.Request{Op: wire.OpFetch, Path: path})
	if err != nil {
		return err
	}
	defer s.close()
	res, err := s.result(sink(w), nil)
	if err != nil {
		return err
	}
	return res.Err.Unpack()
}
