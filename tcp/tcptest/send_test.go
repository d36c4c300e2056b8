package tcptest_test

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// Bytes go out whole, split, one by one, in chunks; all arrive.
func TestSendingInPieces(t *testing.T) {
	b := make([]byte, 100)
	for i := range b {
		b[i] = byte(i)
	}
	ways := map[string]struct {
		chunks int // of AfterChunk
		send   func(c *tcptest.Conn)
	}{
		"whole":     {1, func(c *tcptest.Conn) { c.Send(b) }},
		"two":       {1, func(c *tcptest.Conn) { c.Send(b[:30], nil, b[30:]) }},
		"split":     {3, func(c *tcptest.Conn) { c.SendSplit(b, 0, 1, 1, 50, 100, 200) }},
		"not split": {1, func(c *tcptest.Conn) { c.SendSplit(b) }},
		"dribble":   {100, func(c *tcptest.Conn) { c.Dribble(b) }},
		"chunks": {15, func(c *tcptest.Conn) {
			c.Chunk = 7
			c.Send(b)
		}},
		"pause": {2, func(c *tcptest.Conn) {
			c.Chunk, c.Pause = 50, time.Millisecond
			c.Send(b)
		}},
		"Write": {1, func(c *tcptest.Conn) {
			if n, err := c.Write(b); n != len(b) || err != nil {
				t.Error(n, err)
			}
		}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			chunks := 0
			s := start(t, func(c *tcptest.Conn) {
				c.AfterChunk = func() { chunks++ }
				way.send(c)
			}, nil)
			h := dial(t, s)
			got, err := io.ReadAll(h.nc)
			if err != nil {
				t.Error(err)
			}
			equal(t, "received", got, b)
			h.nc.Close()
			wantErr(t, s.Close())
			if chunks != way.chunks {
				t.Errorf("%d pieces, want %d", chunks, way.chunks)
			}
		})
	}
}

// Damage is where it should be, and nowhere else.
func TestCorrupt(t *testing.T) {
	type damage func(b []byte) []byte
	s := start(t, func(c *tcptest.Conn) {
		c.Handshake(pdu.ICRespFields{HDGST: true, DDGST: true})
		for _, f := range []damage{tcptest.CorruptHeaderDigest, tcptest.CorruptDataDigest, tcptest.CorruptData} {
			b := c.C2HData(pdu.LastPDU, 1, 0, make([]byte, 64))
			was := string(b)
			d := f(b)
			if string(b) != was || string(d) == was || len(d) != len(b) {
				t.Error("not one change in a copy")
			}
			c.Expect(pdu.TypeCapsuleCmd)
			c.Send(d)
		}
		c.Drain()
	}, nil)
	wants := []func(err error) bool{
		func(err error) bool {
			e := new(pdu.Error)
			return errors.As(err, &e) && e.FES == pdu.FESHeaderDigestError
		},
		func(err error) bool { e := new(pdu.DataDigestError); return errors.As(err, &e) },
		func(err error) bool { e := new(pdu.DataDigestError); return errors.As(err, &e) },
	}
	for i := len(wants) - 1; i >= 0; i-- { // the connection ends with the first one
		h := dial(t, start(t, func(c *tcptest.Conn) {
			c.Handshake(pdu.ICRespFields{HDGST: true, DDGST: true})
			f := []damage{tcptest.CorruptHeaderDigest, tcptest.CorruptDataDigest, tcptest.CorruptData}[i]
			c.Send(f(c.C2HData(pdu.LastPDU, 1, 0, make([]byte, 64))))
		}, nil)).handshake(pdu.ICReqFields{HDGST: true, DDGST: true})
		if _, err := h.rd.Next(); !wants[i](err) {
			t.Errorf("damage %d: %v", i, err)
		}
	}
	h := dial(t, s).handshake(pdu.ICReqFields{HDGST: true, DDGST: true})
	for range wants {
		h.post(nvme.Command{Opcode: nvme.OpFlush}, nil)
	}
	h.nc.Close()
	wantErr(t, s.Close())
}

// PDUs that a script builds are those that a host expects.
func TestBuilders(t *testing.T) {
	s := start(t, func(c *tcptest.Conn) {
		c.SetParams(pdu.Params{HDGST: true, HPDA: 3})
		c.Send(c.CapsuleResp(&nvme.Completion{CID: 3}), c.R2T(4, 5, 6, 8), c.C2HData(pdu.LastPDU, 9, 10, []byte{1, 2, 3, 4}))
		c.Send(tcptest.TermReq(pdu.FESDataLimitExceeded, 0, []byte{4, 1, 72, 0, 0, 0, 0, 0}))
	}, nil)
	h := dial(t, s)
	h.rd.Receiver = pdu.NewReceiver(pdu.Host, pdu.Params{HDGST: true, HPDA: 3}, pdu.Limits{})
	if got := h.response(3); got.CID != 3 {
		t.Error(got)
	}
	p := h.next()
	if r := (*pdu.R2T)(p.Header); r.CCCID() != 4 || r.TTAG() != 5 || r.R2TO() != 6 || r.R2TL() != 8 {
		t.Errorf("% x", p.Header)
	}
	p = h.next()
	if d := (*pdu.C2HData)(p.Header); d.CCCID() != 9 || d.DATAO() != 10 || p.PDO()%16 != 0 || p.Flags()&pdu.LastPDU == 0 {
		t.Errorf("% x", p.Header)
	}
	equal(t, "data", p.Data, []byte{1, 2, 3, 4})
	p = h.next()
	if e := (*pdu.TermReq)(p.Header).Err(p.Data); e.From != pdu.Controller || e.FES != pdu.FESDataLimitExceeded || len(e.Header) != 8 {
		t.Errorf("%+v", e)
	}
}

// Writers on several goroutines keep their PDUs together.
func TestConcurrentSend(t *testing.T) {
	const writers, each = 8, 50
	s := start(t, func(c *tcptest.Conn) {
		c.SetParams(pdu.Params{})
		c.Chunk = 5
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for range each {
					c.Send(c.CapsuleResp(&nvme.Completion{CID: uint16(w)}))
				}
			})
		}
		wg.Wait()
	}, nil)
	h := dial(t, s)
	h.rd.Receiver = pdu.NewReceiver(pdu.Host, pdu.Params{}, pdu.Limits{})
	var n [writers]int
	for range writers * each {
		n[(*pdu.CapsuleResp)(h.next().Header).CID()]++
	}
	for w, got := range n {
		if got != each {
			t.Errorf("%d PDUs of writer %d, want %d", got, w, each)
		}
	}
	h.nc.Close()
	wantErr(t, s.Close())
}
