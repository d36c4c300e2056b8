package main

import (
	"net"
	"testing"

	"github.com/qpoll/qpoll/tcp/pdu"
)

// peer listens on the loopback interface and gives each connection to serve.
// It returns an address for -target.
func peer(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "trtype:tcp traddr:127.0.0.1 trsvcid:" + port + " subnqn:nqn.2014-08.org.example:disk"
}

// receive reads what has come, up to n bytes, until there are as many or the
// host has closed the connection.
func receive(c net.Conn, n int) []byte {
	b := make([]byte, n)
	for got := 0; got < n; {
		k, err := c.Read(b[got:])
		if err != nil {
			return b[:got]
		}
		got += k
	}
	return b
}

// icresp is an ICResp of the given format version.
func icresp(version uint16) []byte {
	var h pdu.ICResp
	h.Encode(pdu.ICRespFields{MAXH2CDATA: 65536})
	h[8], h[9] = byte(version), byte(version>>8)
	return h[:]
}
