package load

import (
	"errors"
	"slices"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Faults are the I/Os that failed, over the whole run, warm-up included.
type Faults struct {
	Total    uint64        // with any status but success
	Lost     uint64        // of these: ended by the host, with the controller
	ByStatus []StatusCount // most frequent first
	First    []Fault       // the first few
}

// StatusCount counts the I/Os that completed with a status. The least
// frequent ones may be missing where there are very many different ones.
type StatusCount struct {
	Status nvme.Status
	Count  uint64
}

// Fault is one I/O that failed.
type Fault struct {
	Op     nvme.Opcode
	LBA    uint64
	Blocks uint32
	Status nvme.Status
	At     time.Duration // after the window was opened; negative in the warm-up
}

const (
	maxFirst    = 5  // faults remembered in full
	maxStatuses = 64 // different statuses counted apart
)

// failed counts an I/O that completed with an error.
func (w *worker) failed(j *job, st nvme.Status, now int64) {
	w.faults.count(st.Code(), 1)
	if byHost(st) {
		w.faults.Lost++
		w.lose(now)
	}
	if len(w.faults.First) < maxFirst {
		w.faults.First = append(w.faults.First, Fault{
			Op: opcode(j.op), LBA: j.slot * uint64(w.blocks), Blocks: w.blocks, Status: st,
			At: time.Duration(now - w.from),
		})
	}
}

// byHost tells whether the host itself has ended the command, because its
// controller is lost.
func byHost(st nvme.Status) bool {
	c := st.Code()
	return c == nvme.StatusCommandAbortedByHost || c == nvme.StatusHostPathError
}

// lose takes note that nothing more is to be had from the controller.
func (w *worker) lose(now int64) {
	if !w.lost {
		w.lost, w.endedAt = true, now
	}
}

// refused handles a submission that the queue did not take.
func (w *worker) refused(j *job, err error) {
	if errors.Is(err, nvme.ErrQueueFull) && w.outstanding > 0 {
		w.waiting.pushFront(j)
		return
	}
	if w.err == nil {
		w.err = err
	}
	w.lose(w.now())
	w.retire(j)
}

func opcode(op int) nvme.Opcode {
	if op == read {
		return nvme.OpRead
	}
	return nvme.OpWrite
}

func (f *Faults) count(st nvme.Status, n uint64) {
	f.Total += n
	for i := range f.ByStatus {
		if f.ByStatus[i].Status == st {
			f.ByStatus[i].Count += n
			return
		}
	}
	if len(f.ByStatus) < maxStatuses {
		f.ByStatus = append(f.ByStatus, StatusCount{st, n})
	}
}

// add counts what another worker saw.
func (f *Faults) add(o *Faults) {
	f.Lost += o.Lost
	total := f.Total + o.Total
	for _, s := range o.ByStatus {
		f.count(s.Status, s.Count)
	}
	f.Total = total
	f.First = append(f.First, o.First...)
	slices.SortStableFunc(f.First, func(a, b Fault) int { return int(a.At - b.At) })
	f.First = f.First[:min(len(f.First), maxFirst)]
	slices.SortStableFunc(f.ByStatus, func(a, b StatusCount) int {
		return int(min(b.Count, 1<<62)) - int(min(a.Count, 1<<62))
	})
}
