//qpoll:hot

package load

import (
	"github.com/qpoll/qpoll/internal/tsc"
	"github.com/qpoll/qpoll/nvme"
)

// What a job does; also an index.
const (
	read = iota
	write
	ops
)

// job has one I/O outstanding, or waits for its turn.
type job struct {
	w     *worker
	buf   []byte
	began int64 // when the job wanted the I/O, ns
	slot  uint64
	rng   rng
	op    int
	next  *job // in worker.waiting
}

// completed is the callback of every I/O.
func completed(arg any, st nvme.Status) {
	j := arg.(*job)
	w := j.w
	now := w.now()
	w.outstanding--
	if st.OK() {
		if now >= w.from && now < w.until {
			w.latency[j.op].Record(now - j.began)
			w.ios++
		}
	} else {
		w.failed(j, st, now)
	}
	if now >= w.until || w.lost {
		w.retire(j)
		return
	}
	w.choose(j, now)
	if w.waiting.head == nil {
		w.post(j)
		return
	}
	w.waiting.push(j)
	w.postWaiting()
}

// postWaiting submits for jobs that wait, while there is room. A queue that is
// full with nothing of ours in it will not change for us: post gets to see it.
func (w *worker) postWaiting() {
	for w.waiting.head != nil && (w.q.Room() > 0 || w.outstanding == 0) {
		if !w.post(w.waiting.pop()) {
			return
		}
	}
}

func (w *worker) now() int64 {
	if w.clock != nil {
		return w.clock()
	}
	return tsc.Now()
}

// choose decides what the next I/O of a job is.
func (w *worker) choose(j *job, now int64) {
	j.began = now
	if w.random {
		j.slot = j.rng.below(w.slots)
	} else {
		j.slot = w.next
		if w.next++; w.next == w.slots {
			w.next = 0
		}
	}
	if w.mixed {
		j.op = write
		if j.rng.next()>>32 < w.reads {
			j.op = read
		}
	}
}

// post submits the I/O that was chosen for a job, and reports whether the
// queue took it.
func (w *worker) post(j *job) bool {
	lba := j.slot * uint64(w.blocks)
	var err error
	if j.op == read {
		err = w.q.Read(j.buf, lba, w.blocks, completed, j)
	} else {
		err = w.q.Write(j.buf, lba, w.blocks, completed, j)
	}
	if err != nil {
		w.refused(j, err)
		return false
	}
	w.outstanding++
	return true
}

// fifo holds jobs that wait for room in the queue.
type fifo struct{ head, tail *job }

func (f *fifo) push(j *job) {
	j.next = nil
	if f.head == nil {
		f.head = j
	} else {
		f.tail.next = j
	}
	f.tail = j
}

func (f *fifo) pushFront(j *job) {
	j.next = f.head
	if f.head == nil {
		f.tail = j
	}
	f.head = j
}

func (f *fifo) pop() *job {
	j := f.head
	f.head = j.next
	return j
}
