package backend

// queue is a list of operations in the order in which they came.
type queue struct {
	head, tail *Op
}

func (q *queue) push(op *Op) {
	op.next = nil
	if q.tail == nil {
		q.head = op
	} else {
		q.tail.next = op
	}
	q.tail = op
}

// pop removes the first operation. There must be one.
func (q *queue) pop() *Op {
	op := q.head
	q.head, op.next = op.next, nil
	if q.head == nil {
		q.tail = nil
	}
	return op
}

// remove removes op, and reports whether it was there.
func (q *queue) remove(op *Op) bool {
	var before *Op
	for o := q.head; o != nil; before, o = o, o.next {
		if o != op {
			continue
		}
		if before == nil {
			q.head = op.next
		} else {
			before.next = op.next
		}
		if q.tail == op {
			q.tail = before
		}
		op.next = nil
		return true
	}
	return false
}
