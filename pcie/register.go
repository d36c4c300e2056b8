package pcie

import (
	"fmt"
	"slices"
)

// register makes memory of the user's own reachable; fd is the file that it is
// a shared mapping of, -1 if there is none.
func (m *memory) register(b []byte, fd int, offset int64) error {
	p := address(b)
	if len(b) == 0 || p%pageSize != 0 || len(b)%pageSize != 0 {
		return fmt.Errorf("%w: %d bytes at %#x are not whole pages of %d", ErrMemory, len(b), p, pageSize)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.cut {
		return ErrGone
	}
	end := p + uintptr(len(b))
	for _, r := range m.table.Load().list {
		if p < r.base+r.size && r.base < end {
			return fmt.Errorf("%w: part of the %d bytes at %#x is registered already", ErrMemory, len(b), p)
		}
	}
	if limit := m.dev.MaxMappings(); limit > 0 && m.mappings >= limit {
		return fmt.Errorf("%w: the device takes no more than %d mappings", ErrMemory, limit)
	}
	iova, pages, err := m.mapDMA(Memory{Bytes: b, FD: fd, Offset: offset}, pageShift)
	if err != nil {
		return err
	}
	m.users = append(m.users, userRegion{region{p, uintptr(len(b)), iova, pages, pageShift}, b})
	m.publish()
	return nil
}

// unregister undoes register of the same memory. No command may use it.
func (m *memory) unregister(b []byte) error {
	p := address(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.cut {
		return nil // all of it is undone
	}
	i := slices.IndexFunc(m.users, func(u userRegion) bool { return u.base == p && len(u.b) == len(b) })
	if i < 0 {
		return fmt.Errorf("%w: %d bytes at %#x are not registered", ErrMemory, len(b), p)
	}
	u := m.users[i]
	m.users = slices.Delete(m.users, i, i+1)
	m.publish()
	return m.unmapDMA(u.iova, len(b))
}
