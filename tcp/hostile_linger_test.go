package tcp_test

import (
	"context"
	"testing"
	"time"

	"github.com/qpoll/qpoll/tcp"
)

// A controller that goes on to send behind a connection that was given up does
// not keep it for longer than one that is silent.
func TestLingerFlood(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigConfig{})
	r.feed(make([]byte, 8)) // no PDU
	r.lost()
	if !tcp.Lingering(r.qp) {
		t.Fatal("closed without a word")
	}
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for b := make([]byte, 64<<10); ; {
			if _, err := r.peer.NetConn().Write(b); err != nil {
				return
			}
		}
	}()
	for end := r.now + int64(time.Second); r.now < end; {
		r.poll()
	}
	r.now += int64(10 * time.Millisecond)
	r.poll()
	if tcp.Lingering(r.qp) {
		t.Error("still open after its time")
	}
	r.while(func(ctx context.Context) error { <-flooded; return nil })
}
