package pcie

import "github.com/qpoll/qpoll/nvme"

var _ nvme.MemoryTransport = (*transport)(nil)

// Alloc implements nvme.MemoryTransport.
func (t *transport) Alloc(n int) ([]byte, error) {
	b, err := t.mem.alloc(n, false, true)
	if err != nil {
		return nil, err
	}
	return b[:n:len(b)], nil
}

// Free implements nvme.MemoryTransport.
func (t *transport) Free(b []byte) error { return t.mem.release(b, true) }

// Register implements nvme.MemoryTransport.
func (t *transport) Register(b []byte, fd int, offset int64) error {
	return t.mem.register(b, fd, offset)
}

// Unregister implements nvme.MemoryTransport.
func (t *transport) Unregister(b []byte) error { return t.mem.unregister(b) }
