package target_test

import (
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// halves are the commands of a fused operation.
func halves() (first, second nvme.Command) {
	first, second = rw(nvme.OpCompare, 3, 1), write(3, 1)
	first.Flags |= nvme.FlagFuseFirst
	second.Flags |= nvme.FlagFuseSecond
	return first, second
}

// statuses receives the responses of n commands.
func (h *host) statuses(n int) map[uint16]nvme.Status {
	h.t.Helper()
	got := map[uint16]nvme.Status{}
	for range n {
		cpl := h.completion()
		got[cpl.CID] = cpl.Status()
	}
	return got
}

// TestFusedSecondRefused has a second half whose data cannot be had: the first
// is answered, too, whether its data is there or still to come.
func TestFusedSecondRefused(t *testing.T) {
	for _, late := range []bool{false, true} {
		_, q := newLab(t, oneNamespace(backend.NewHeap(1<<20))).io(connectOptions{}, pdu.ICReqFields{})
		first, second := halves()
		zero := make([]byte, 512)
		var cid uint16
		var tag pdu.R2T
		if late {
			cid = q.post(first, nil, 512)
			tag = *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
		} else {
			cid = q.post(first, zero, 0)
		}
		bad := q.post(second, nil, 1024) // for one block
		if late {
			q.is(q.completion(), nvme.StatusDataSGLLengthInvalid|dnr)
			q.ok(q.out(write(9, 1), zero)) // may take the place of the second half
			q.answer(tag.CCCID(), tag.TTAG(), 0, zero)
			if cpl := q.is(q.completion(), nvme.StatusAbortedFailedFused); cpl.CID != cid {
				t.Errorf("response to %d", cpl.CID)
			}
		} else {
			got := q.statuses(2)
			if got[cid] != nvme.StatusAbortedFailedFused || got[bad] != nvme.StatusDataSGLLengthInvalid|dnr {
				t.Errorf("statuses %v", got)
			}
		}
		q.ok(q.do(rw(nvme.OpFlush, 0, 1), nil))
	}
}

// TestFusedFirstDamaged has a first half whose data arrives damaged before the
// second half comes: neither is executed, and both are answered.
func TestFusedFirstDamaged(t *testing.T) {
	_, q := newLab(t, oneNamespace(backend.NewHeap(1<<20))).io(connectOptions{}, pdu.ICReqFields{DDGST: true})
	first, second := halves()
	q.post(first, nil, 512)
	r := *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
	b := q.h2c(pdu.LastPDU, r.CCCID(), r.TTAG(), 0, make([]byte, 512))
	b[len(b)-1] ^= 1
	q.send(b)
	q.is(q.completion(), nvme.StatusTransientTransportError)
	q.post(second, pattern(1, 512), 0)
	q.is(q.completion(), nvme.StatusAbortedFailedFused)
	q.ok(q.do(rw(nvme.OpFlush, 0, 1), nil))
	got, cpl := q.in(read(3, 1), 512)
	q.ok(cpl)
	same(t, "data", got, make([]byte, 512))
}
