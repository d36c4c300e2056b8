//go:build linux

package main

import (
	"os"
	"sync"
)

// inputQueue writes to the standard input of a process from a goroutine of its
// own. It is unbounded: the host, which is trusted, bounds what it sends.
type inputQueue struct {
	f     *os.File
	mu    sync.Mutex
	wake  sync.Cond
	bufs  [][]byte
	ended bool
	done  chan struct{}
}

func newInputQueue(f *os.File) *inputQueue {
	q := &inputQueue{f: f, done: make(chan struct{})}
	q.wake.L = &q.mu
	go q.run()
	return q
}

func (q *inputQueue) put(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.bufs = append(q.bufs, b)
		q.wake.Signal()
	}
}

// end closes the file after what has been put.
func (q *inputQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.wake.Signal()
}

// close drops what has not been written yet and returns when the goroutine has
// ended. Closing the file ends a write that blocks.
func (q *inputQueue) close() {
	q.mu.Lock()
	q.bufs, q.ended = nil, true
	q.wake.Signal()
	q.mu.Unlock()
	q.f.Close()
	<-q.done
}

func (q *inputQueue) run() {
	defer close(q.done)
	defer q.f.Close()
	for {
		b, ok := q.take()
		if !ok {
			return
		}
		// The process may have closed its input; it may do so.
		if _, err := q.f.Write(b); err != nil {
			q.end()
		}
	}
}

func (q *inputQueue) take() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.bufs) == 0 && !q.ended {
		q.wake.Wait()
	}
	if len(q.bufs) == 0 {
		return nil, false
	}
	b := q.bufs[0]
	q.bufs = q.bufs[1:]
	return b, true
}
