package tcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// The controller closes the connection after any number of bytes of what it
// sends: in a header, in a digest, in padding, in data, between PDUs.
func TestWireCase11CloseWithinPDU(t *testing.T) {
	t.Parallel()
	cfg := digestRig(true, true)
	cfg.tcp.HPDA = 15 // 64 bytes
	for _, size := range []int{512, 64 << 10} {
		var ends []int
		for _, part := range [][2]int{{0, 32}, {62, 67}, {127, 130}} { // header and digest, padding, data
			for n := part[0]; n < part[1]; n++ {
				ends = append(ends, n)
			}
		}
		if size > 512 {
			ends = []int{1, 28, 40, 64, 65, 16 << 10, size - 1, size + 63, size + 64, size + 66, size + 68, size + 70}
		}
		for _, n := range ends {
			r := newRig(t, cfg)
			outstanding(r)
			r.read(make([]byte, size), 0)
			q := r.command(nvme.OpRead)
			b := answer(r, q.Cmd.CID, make([]byte, size), size)
			r.feed(b[:n])
			r.peer.CloseWrite()
			err := r.lost()
			if !errors.Is(err, tcp.ErrPeerClosed) {
				t.Fatalf("closed after %d of %d bytes: %v", n, len(b), err)
			}
			r.peer.ExpectEnd()
			wantAborted(r)
			r.close()
		}
	}
}

// The controller closes while data is being received straight into buffers.
func TestWireCase11CloseWithinDirectData(t *testing.T) {
	t.Parallel()
	for _, vectored := range []bool{false, true} {
		r := newRig(t, rigConfig{})
		buf := make([]byte, 1<<20)
		if vectored {
			r.readV([][]byte{buf[:5], buf[5 : 1<<19], nil, buf[1<<19:]}, 0)
		} else {
			r.read(buf, 0)
		}
		q := r.command(nvme.OpRead)
		b := r.peer.C2HData(pdu.LastPDU, q.Cmd.CID, 0, pattern(make([]byte, 1<<20), 1))
		r.feed(b[:100<<10], 10, 30, 3000, 40<<10)
		r.peer.CloseWrite()
		wantClosed(t, r.lost())
		wantAborted(r)
		r.peer.ExpectEnd()
	}
}

// A reset is a reset, with commands outstanding and data of a large write on
// its way.
func TestWireCase11ResetWithinWrite(t *testing.T) {
	t.Parallel()
	for _, read := range []int{0, 1, 64 << 10, 700 << 10} {
		t.Run(fmt.Sprint(read), func(t *testing.T) {
			r := newRig(t, clogRig(rigConfig{}))
			outstanding(r)
			data := make([]byte, 1<<20)
			r.write(data, 0)
			q := r.command(nvme.OpWrite)
			r.feed(r.peer.R2T(q.Cmd.CID, 1, 0, 1<<20))
			r.while(func(context.Context) error {
				buf := make([]byte, 4096)
				for got := 0; got < read; {
					n, err := r.peer.NetConn().Read(buf[:min(len(buf), read-got)])
					if err != nil {
						return err
					}
					got += n
				}
				return nil
			})
			r.peer.Reset()
			if err := r.lost(); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the error is %v, want a reset", err)
			}
			wantAborted(r)
		})
	}
}

// The same with a controller that comes back: the write is carried out in the
// end, once and whole.
func TestWireCase11ResetWithinWriteReplayed(t *testing.T) {
	t.Parallel()
	k, ns := disk(4096)
	k.R2TLength = 256 << 10
	var resets atomic.Int32
	k.Override = func(r *tcptest.Request) bool {
		if r.Cmd.Opcode != nvme.OpWrite || r.Queue == 0 || resets.Add(1) > 3 {
			return false
		}
		r.Conn.Send(r.Conn.R2T(r.Cmd.CID, 1, 0, 1<<20))
		buf := make([]byte, 100<<10*int(resets.Load()))
		for n := 0; n < len(buf); {
			k, err := r.Conn.NetConn().Read(buf[n:])
			if err != nil {
				break
			}
			n += k
		}
		r.Conn.Reset()
		return true
	}
	f := open(t, k, quickReconnect)
	data := pattern(make([]byte, 1<<20), 3)
	if _, err := f.namespace(1).WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(data))
	if _, err := ns.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the media does not hold what was written (%v)", err)
	}
	if n := resets.Load(); n != 4 {
		t.Errorf("the write was sent %d times", n)
	}
}

// A controller that falls silent at any point of the way to being live: the
// attempt ends by itself.
func TestWireCase11Silent(t *testing.T) {
	t.Parallel()
	const limit = 60 * time.Millisecond
	short := func(cfg *nvme.Config) { cfg.ConnectTimeout = limit }
	t.Run("accepts only", func(t *testing.T) {
		f := setup(t, nil, func(c *tcptest.Conn) { c.Stall() })
		wantTimeout(t, f.connect(short))
	})
	t.Run("reads only", func(t *testing.T) {
		f := setup(t, nil, func(c *tcptest.Conn) { c.Drain() })
		wantTimeout(t, f.connect(short))
	})
	// One command more is answered each time, until it is enough.
	for answered := 0; ; answered++ {
		k, _ := disk(64)
		k.CAP = capability(func(f *nvme.CAPFields) { f.TO = 0 }) // the time to get ready comes on top
		var n atomic.Int32
		k.Override = func(*tcptest.Request) bool { return int(n.Add(1)) > answered }
		f := setup(t, k, nil)
		err := f.connect(short)
		if err == nil {
			if answered < 5 {
				t.Errorf("live after %d answers", answered)
			}
			n.Store(-1 << 20) // let it shut down
			f.close()
			break
		}
		if !errors.Is(err, nvme.ErrTimeout) {
			t.Fatalf("after %d answers: %v", answered, err)
		}
	}
}

func wantTimeout(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, nvme.ErrTimeout) {
		t.Fatalf("the error is %v, want ErrTimeout", err)
	}
	var op *nvme.OpError
	if !errors.As(err, &op) || !op.Timeout() {
		t.Errorf("%v is not an *nvme.OpError that says Timeout", err)
	}
}

// A controller that falls silent when it is reconnected to: the attempt ends,
// and the next one succeeds. Commands wait for that.
func TestWireCase11SilentOnReconnect(t *testing.T) {
	t.Parallel()
	k, _ := disk(64)
	var silent atomic.Int32
	k.Override = func(r *tcptest.Request) bool {
		return r.Cmd.Opcode == nvme.OpFabrics && r.Cmd.FabricsType() == nvme.FabricsConnect && silent.Add(-1) >= 0
	}
	attempts := make(chan error, 64)
	f := open(t, k, quickReconnect, func(cfg *nvme.Config) {
		cfg.ConnectTimeout = 600 * time.Millisecond
		cfg.Events = &nvme.Events{Reconnect: func(_ *nvme.Controller, _ int, err error) { attempts <- err }}
	})
	q := f.queue(nvme.QueueConfig{})
	silent.Store(1)
	f.srv.Drop()
	eventually(t, "the loss", func() bool { return f.c.State() == nvme.StateConnecting })
	o := f.submit("read", func(o *op) error { return q.Read(make([]byte, 512), 0, 1, opDone, o) })
	if err := <-attempts; !errors.Is(err, nvme.ErrTimeout) {
		t.Errorf("the attempt ended with %v, want ErrTimeout", err)
	}
	if st := o.wait(t); !st.OK() {
		t.Errorf("%s: %v", o.name, st)
	}
}

// A whole controller that sends a byte at a time.
func TestWireCase11OneByteAtATime(t *testing.T) {
	t.Parallel()
	for _, digests := range []bool{false, true} {
		k, ns := disk(64)
		k.Chunk, k.C2HData, k.R2TLength, k.InCapsule = 1, 1000, 600, -1
		f := open(t, k, func(cfg *nvme.Config) {
			cfg.Transport = tcp.Config{HeaderDigest: digests, DataDigest: digests}
		})
		data := pattern(make([]byte, 4096), 1)
		n := f.namespace(1)
		if _, err := n.WriteAt(data, 512); err != nil {
			t.Fatal(err)
		}
		got, media := make([]byte, len(data)), make([]byte, len(data))
		if _, err := n.ReadAt(got, 512); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read something else (%v)", err)
		}
		if _, err := ns.ReadAt(media, 512); err != nil || !bytes.Equal(media, data) {
			t.Errorf("wrote something else (%v)", err)
		}
	}
}

// A controller that closes the connection instead of answering, at any point
// of the way to being live: the error says that it did.
func TestWireCase11CloseWhileConnecting(t *testing.T) {
	t.Parallel()
	closeAt := map[string]tcptest.Script{
		"at once":     func(c *tcptest.Conn) { c.Close() },
		"after ICReq": func(c *tcptest.Conn) { c.ExpectICReq(); c.Close() },
		"within ICResp": func(c *tcptest.Conn) {
			c.ExpectICReq()
			c.Send(pdu.AppendICResp(nil, pdu.ICRespFields{MAXH2CDATA: 4096})[:77])
			c.Close()
		},
		"after ICResp":  func(c *tcptest.Conn) { c.Handshake(pdu.ICRespFields{}); c.Close() },
		"after Connect": func(c *tcptest.Conn) { c.Handshake(pdu.ICRespFields{}); c.ExpectCommand(nvme.OpFabrics); c.Close() },
		"after Property Get": func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{})
			c.AcceptConnect(1)
			c.ExpectCommand(nvme.OpFabrics)
			c.Close()
		},
		"within its response": func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{})
			c.AcceptConnect(1)
			r := c.ExpectCommand(nvme.OpFabrics)
			c.Send(r.Response(0, 0)[:5])
			c.Close()
		},
	}
	for name, script := range closeAt {
		t.Run(name, func(t *testing.T) {
			f := setup(t, nil, script)
			wantClosed(t, f.connect())
		})
	}
	for name, script := range map[string]tcptest.Script{
		"reset at once":    func(c *tcptest.Conn) { c.Reset() },
		"reset in ICResp":  func(c *tcptest.Conn) { c.ExpectICReq(); c.Reset() },
		"reset in Connect": func(c *tcptest.Conn) { c.Handshake(pdu.ICRespFields{}); c.ExpectCommand(nvme.OpFabrics); c.Reset() },
		"reset in CAP": func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{})
			c.AcceptConnect(1)
			c.ExpectCommand(nvme.OpFabrics)
			c.Reset()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t, nil, script)
			err := f.connect()
			// A connection that is reset before anything was sent can also look
			// refused.
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("the error is %v, want a reset", err)
			}
		})
	}
}
