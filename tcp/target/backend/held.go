package backend

// held is a heap of operations that wait for their time, earliest first, and
// among those of one time in the order in which they came.
type held struct {
	ops []*Op
	seq uint64
}

// due reports whether the time of the first operation has come.
func (h *held) due(now int64) bool { return len(h.ops) > 0 && h.ops[0].due <= now }

// next is when the first operation is due, 0 if there is none.
func (h *held) next() int64 {
	if len(h.ops) == 0 {
		return 0
	}
	return h.ops[0].due
}

func (h *held) push(op *Op, due int64) {
	h.seq++
	op.due, op.seq = due, h.seq
	h.ops = append(h.ops, op)
	h.up(len(h.ops) - 1)
}

// pop removes the first operation.
func (h *held) pop() *Op { return h.removeAt(0) }

// remove removes op, and reports whether it was there.
func (h *held) remove(op *Op) bool {
	for i, o := range h.ops {
		if o == op {
			h.removeAt(i)
			return true
		}
	}
	return false
}

func (h *held) removeAt(i int) *Op {
	op, last := h.ops[i], len(h.ops)-1
	h.ops[i] = h.ops[last]
	h.ops[last] = nil
	h.ops = h.ops[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	return op
}

func (h *held) less(i, j int) bool {
	a, b := h.ops[i], h.ops[j]
	if a.due != b.due {
		return a.due < b.due
	}
	return a.seq < b.seq
}

func (h *held) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.ops[i], h.ops[parent] = h.ops[parent], h.ops[i]
		i = parent
	}
}

func (h *held) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.ops); c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.ops[i], h.ops[least] = h.ops[least], h.ops[i]
		i = least
	}
}
