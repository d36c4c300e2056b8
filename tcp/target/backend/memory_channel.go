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
		copy(m.mem[op.Offset:end], op.Data)
	case Compare:
		if string(m.mem[op.Offset:end]) != string(op.Data) {
			op.Status = nvme.StatusCompareFailure
		}
	case WriteZeroes, Deallocate:
		m.zero(op.Offset, op.Length)
	}
	return true
}
