//qpoll:hot

package sys

import (
	"structs"
	"unsafe"
)

// Iovec is struct iovec of the Linux ABI: one piece of memory of a vectored
// call. Base is a real pointer, so that memory of the Go heap stays alive
// while an Iovec refers to it.
type Iovec struct {
	_    structs.HostLayout
	Base *byte
	Len  uint64 // bytes
}

// MaxIovecs is the most pieces that one call takes (UIO_MAXIOV).
const MaxIovecs = 1024

const (
	_ = uint(unsafe.Sizeof(Iovec{}) - 16)
	_ = uint(16 - unsafe.Sizeof(Iovec{}))
	_ = uint(unsafe.Offsetof(Iovec{}.Len) - 8)
	_ = uint(8 - unsafe.Offsetof(Iovec{}.Len))
)

// Set makes v refer to b.
func (v *Iovec) Set(b []byte) {
	v.Base = unsafe.SliceData(b)
	v.Len = uint64(len(b))
}

// Bytes returns the memory that v refers to.
func (v *Iovec) Bytes() []byte { return unsafe.Slice(v.Base, v.Len) }

// Consume drops the first n bytes of iovs, after a call that moved that many,
// and returns what is left: the first piece may be cut in place. n must not be
// more than the pieces hold.
func Consume(iovs []Iovec, n int) []Iovec {
	for i := range iovs {
		v := &iovs[i]
		if uint64(n) < v.Len {
			v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
			v.Len -= uint64(n)
			return iovs[i:]
		}
		n -= int(v.Len)
		v.Base, v.Len = nil, 0
	}
	return iovs[len(iovs):]
}
