package backend

import (
	"bytes"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/nvme"
)

// filePiece is how much is compared, verified or zeroed at a time.
const filePiece = 256 << 10

// execute carries out an operation and returns its status.
func (b *File) execute(op *Op) nvme.Status {
	if op.Kind == CompareAndWrite {
		b.exclusive.Lock()
		defer b.exclusive.Unlock()
	} else if op.Kind != Flush {
		b.exclusive.RLock()
		defer b.exclusive.RUnlock()
	}
	switch op.Kind {
	case Read:
		return b.read(op.Data[:op.Length], op.Offset)
	case Write:
		return b.durable(op, b.write(op.Data[:op.Length], op.Offset))
	case Flush:
		return b.durable(op, nvme.StatusSuccess)
	case WriteZeroes:
		return b.durable(op, b.pieces(op, func(_ []byte, n, off int64) nvme.Status {
			return b.write(zeros[:n], off)
		}))
	case Compare:
		return b.compare(op)
	case CompareAndWrite:
		if s := b.compare(op); !s.OK() {
			return s
		}
		return b.durable(op, b.write(op.Second[:op.Length], op.Offset))
	case Verify:
		return b.pieces(op, func(buf []byte, n, off int64) nvme.Status { return b.read(buf[:n], off) })
	}
	return nvme.StatusInvalidOpcode | nvme.StatusDNR
}

// pieces calls f for one piece of the operation after the other.
func (b *File) pieces(op *Op, f func(buf []byte, n, off int64) nvme.Status) nvme.Status {
	buf := make([]byte, min(op.Length, filePiece))
	for off, left := op.Offset, op.Length; left > 0; {
		n := min(left, filePiece)
		if s := f(buf, n, off); !s.OK() {
			return s
		}
		off += n
		left -= n
	}
	return nvme.StatusSuccess
}

func (b *File) compare(op *Op) nvme.Status {
	return b.pieces(op, func(buf []byte, n, off int64) nvme.Status {
		s := b.read(buf[:n], off)
		if at := off - op.Offset; s.OK() && !bytes.Equal(buf[:n], op.Data[at:at+n]) {
			return nvme.StatusCompareFailure
		}
		return s
	})
}

// read fills buf. What is beyond the end of the file, which a resize may have
// moved, is lost.
func (b *File) read(buf []byte, off int64) nvme.Status {
	for len(buf) > 0 {
		n, err := sys.Pread(b.fd, buf, off)
		if err != nil || n == 0 {
			return nvme.StatusUnrecoveredReadError
		}
		buf, off = buf[n:], off+int64(n)
	}
	return nvme.StatusSuccess
}

func (b *File) write(data []byte, off int64) nvme.Status {
	for len(data) > 0 {
		n, err := sys.Pwrite(b.fd, data, off)
		if err != nil || n == 0 {
			return nvme.StatusWriteFault
		}
		data, off = data[n:], off+int64(n)
	}
	return nvme.StatusSuccess
}

// durable makes what was written durable if op is a flush or asks for it.
func (b *File) durable(op *Op, s nvme.Status) nvme.Status {
	if !s.OK() || op.Kind != Flush && !op.FUA {
		return s
	}
	if sys.Fsync(b.fd) != nil {
		return nvme.StatusWriteFault
	}
	return nvme.StatusSuccess
}
