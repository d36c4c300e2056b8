//qpoll:hot

package backend

import "github.com/qpoll/qpoll/nvme"

type memoryChannel struct {
	inline
	memory *Memory
}

// Submit implements Channel. Reads are views.
func (c *memoryChannel) Submit(op *Op) bool {
	m := c.memory
	if !op.inRange(m.size.Load()) {
		return true
	}
	op.Status = nvme.StatusSuccess
	end := op.Offset + op.Length
	switch op.Kind {
	case Read:
		op.Data = m.mem[op.Offset:end:end]
	case Write:
		if m.shared.Load() {
			m.writeShared(op)
		} else {
			copy(m.mem[op.Offset:end], op.Data)
		}
	case Compare:
		if string(m.mem[op.Offset:end]) != string(op.Data) {
			op.Status = nvme.StatusCompareFailure
		}
	case WriteZeroes, Deallocate:
		m.locks.lock(op)
		m.zero(op.Offset, op.Length)
		m.locks.unlock(op)
	case CompareAndWrite:
		m.locks.lock(op)
		if string(m.mem[op.Offset:end]) != string(op.Data) {
			op.Status = nvme.StatusCompareFailure
		} else {
			copy(m.mem[op.Offset:end], op.Second)
		}
		m.locks.unlock(op)
	}
	return true
}

// Close implements Channel.
func (c *memoryChannel) Close() { c.memory.opened.Add(-1) } //qpoll:cold once for each channel
