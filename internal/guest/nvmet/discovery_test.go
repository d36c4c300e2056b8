//go:build guest

package nvmet_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/qpoll/qpoll/internal/guest/nvmehost"
)

// discoveryLog asks a discovery service for its log and returns its entries as
// "NQN at address:port". It is a client of few words, so that these tests depend
// on nothing but the kernel: NVMe/TCP, one command at a time, on the admin queue.
func discoveryLog(addr string) ([]string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return nil, err
	}
	c := client{conn}
	if err := c.connect(); err != nil {
		return nil, err
	}
	const max = 16
	log := make([]byte, 1024*(1+max))
	get := command(0x02, uint32(len(log)), 0x5a) // Get Log Page, SGL: transport data
	binary.LittleEndian.PutUint32(get[40:], 0x70|uint32(len(log)/4-1)<<16)
	if err := c.do(get, nil, log); err != nil {
		return nil, fmt.Errorf("get log page: %w", err)
	}
	n := binary.LittleEndian.Uint64(log[8:])
	if n > max {
		return nil, fmt.Errorf("%d records", n)
	}
	var out []string
	for i := range n {
		e := log[1024*(i+1):]
		text := func(from, to int) string { return strings.TrimRight(string(e[from:to]), " \x00") }
		out = append(out, fmt.Sprintf("%s at %s:%s", text(256, 512), text(512, 768), text(32, 64)))
	}
	return out, nil
}

type client struct{ net.Conn }

// command returns a submission queue entry with an SGL of a type for n bytes.
func command(opcode byte, n uint32, sgl byte) []byte {
	s := make([]byte, 64)
	s[0], s[1], s[39] = opcode, 0x40, sgl
	binary.LittleEndian.PutUint32(s[32:], n)
	return s
}

func (c client) connect() error {
	ic := make([]byte, 128)
	ic[2] = 128
	binary.LittleEndian.PutUint32(ic[4:], 128)
	if _, err := c.Write(ic); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, ic); err != nil {
		return err
	}
	if ic[0] != 1 {
		return fmt.Errorf("answer to ICReq has type %d", ic[0])
	}
	data := make([]byte, 1024)
	copy(data, "qpoll-test-host-")                   // host ID
	binary.LittleEndian.PutUint16(data[16:], 0xffff) // any controller
	copy(data[256:], nvmehost.DiscoveryNQN)
	copy(data[512:], "nqn.2014-08.org.qpoll:discovery-test")
	s := command(0x7f, 1024, 0x01) // data in the capsule
	s[4] = 1                       // Connect
	binary.LittleEndian.PutUint16(s[44:], 31)
	if err := c.do(s, data, nil); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	set := command(0x7f, 0, 0) // Property Set: CC.EN, entry sizes
	binary.LittleEndian.PutUint32(set[44:], 0x14)
	binary.LittleEndian.PutUint32(set[48:], 6<<16|4<<20|1)
	if err := c.do(set, nil, nil); err != nil {
		return fmt.Errorf("property set: %w", err)
	}
	return nil
}

// do sends a command capsule and reads data until the response.
func (c client) do(sqe, out, in []byte) error {
	pdu := make([]byte, 72, 72+len(out))
	pdu[0], pdu[2] = 4, 72
	if len(out) > 0 {
		pdu[3] = 72
	}
	binary.LittleEndian.PutUint32(pdu[4:], uint32(72+len(out)))
	copy(pdu[8:], sqe)
	if _, err := c.Write(append(pdu, out...)); err != nil {
		return err
	}
	for {
		var h [24]byte
		if _, err := io.ReadFull(c, h[:]); err != nil {
			return err
		}
		switch h[0] {
		case 5: // response
			if st := binary.LittleEndian.Uint16(h[22:]) >> 1; st != 0 {
				return fmt.Errorf("status %#x", st)
			}
			return nil
		case 7: // data
			off, n := binary.LittleEndian.Uint32(h[12:]), binary.LittleEndian.Uint32(h[16:])
			if uint64(off)+uint64(n) > uint64(len(in)) {
				return errors.New("data beyond the buffer")
			}
			if _, err := io.CopyN(io.Discard, c, int64(max(h[3], 24))-24); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, in[off:off+n]); err != nil {
				return err
			}
			if h[1]&8 != 0 { // success: no response follows
				return nil
			}
		default:
			return fmt.Errorf("PDU of type %d", h[0])
		}
	}
}
