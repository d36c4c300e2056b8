package nvme

import "fmt"

// MemoryTransport is implemented by transports whose controllers fetch and
// store data by themselves, and do so best where they need no copy: in memory
// that was allocated here or registered. Methods may be called from any
// goroutine, before the transport is connected too.
type MemoryTransport interface {
	// Alloc returns n bytes of zeroed memory, page aligned, that the controller
	// can reach. It is outside of Go's heap and must not hold Go pointers.
	Alloc(n int) ([]byte, error)
	// Free gives back exactly what Alloc returned.
	Free(b []byte) error
	// Register makes memory of the caller's own reachable: whole pages that stay
	// mapped. fd is the file that b is a shared mapping of from offset on, which
	// controllers in other processes need; -1 if there is none.
	Register(b []byte, fd int, offset int64) error
	// Unregister undoes Register of the same memory, which no command uses any
	// more.
	Unregister(b []byte) error
}

// Alloc returns n bytes of zeroed memory for I/O on this controller: memory that
// it can reach by itself, so that nothing is copied. Where the transport has no
// such thing (tcp), it is ordinary memory. Any memory can be used for I/O; this
// kind is the fastest. It is page aligned, lives outside of Go's heap, must not
// hold Go pointers, and is not collected: give it to Free. It stays valid
// beyond Close. Any goroutine.
func (c *Controller) Alloc(n int) ([]byte, error) {
	if n <= 0 {
		return nil, fmt.Errorf("%w: %d bytes of memory", ErrLength, n)
	}
	if m, ok := c.t.(MemoryTransport); ok {
		b, err := m.Alloc(n)
		return b, c.opError("allocate memory", -1, err)
	}
	return make([]byte, n), nil
}

// Free gives back memory from Alloc, which no command uses any more. b is what
// Alloc returned, not a part of it. Freeing what is not allocated is an error.
// Any goroutine, also after Close.
func (c *Controller) Free(b []byte) error {
	if m, ok := c.t.(MemoryTransport); ok {
		return c.opError("free memory", -1, m.Free(b))
	}
	return nil
}

// Register lets the controller reach memory of the caller's own, so that I/O to
// and from it is not copied: b is whole pages of 4 KiB at a multiple of that,
// for example a mapping, and is locked into memory until Unregister or Close. fd
// is the file that b is a shared mapping of from offset on, -1 if there is none;
// controllers in other processes need it. Where the transport reaches all memory
// alike (tcp), it does nothing. Any goroutine.
func (c *Controller) Register(b []byte, fd int, offset int64) error {
	if m, ok := c.t.(MemoryTransport); ok {
		return c.opError("register memory", -1, m.Register(b, fd, offset))
	}
	return nil
}

// Unregister undoes Register of the same memory, which no command uses any more.
// Any goroutine.
func (c *Controller) Unregister(b []byte) error {
	if m, ok := c.t.(MemoryTransport); ok {
		return c.opError("unregister memory", -1, m.Unregister(b))
	}
	return nil
}
