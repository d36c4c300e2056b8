package pcietest

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
)

// shared is memory of the controller that drivers map: doorbells, and the
// controller memory buffer.
type shared struct {
	fd int
	b  []byte
	w  mmio.Window
}

// newShared returns so many bytes, which are at an offset of their file.
func newShared(name string, offset, size int64) (*shared, error) {
	fd, err := sys.Memfd(name, offset+size, unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	// Who has the file could cut it off under us.
	if err := sys.SealSize(fd); err != nil {
		return nil, errors.Join(err, sys.Close(fd))
	}
	b, err := sys.Mmap(fd, offset, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, sys.Close(fd))
	}
	return &shared{fd: fd, b: b, w: mmio.NewWindow(b)}, nil
}

func (s *shared) close() error {
	if s == nil || s.b == nil { // never made, or closed
		return nil
	}
	b := s.b
	s.b, s.w = nil, mmio.Window{}
	return errors.Join(sys.Munmap(b), sys.Close(s.fd))
}
