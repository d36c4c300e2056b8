package tcp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/qpoll/qpoll/nvme"
)

// Config holds what can be chosen about NVMe/TCP connections, for the field
// Transport of nvme.Config. The zero value works. Options of the address
// string (hdr_digest, data_digest, tos, priority, each =value) win.
type Config struct {
	// HeaderDigest and DataDigest ask for CRC32C digests of PDU headers and
	// data. A controller that declines one is refused, since what was asked
	// for would silently not be had.
	HeaderDigest, DataDigest bool
	// HPDA is the alignment asked for the data of PDUs to the host, in dwords,
	// 0's based, 0 to 31. Linux' target hangs up on any but 0.
	HPDA uint8
	// MaxR2T is how many R2T PDUs the controller may have outstanding per
	// command, 1 to 128. 0: 8.
	MaxR2T int
	// TOS is the IP type of service or IPv6 traffic class of the connections.
	TOS uint8
	// Priority is SO_PRIORITY of the sockets; 0 leaves the default.
	Priority int
	// Congestion names the TCP congestion control; empty leaves the default.
	// BBR, where it is the default, paces even loopback connections.
	Congestion string
	// SendBuffer and RecvBuffer are SO_SNDBUF and SO_RCVBUF in bytes; 0 leaves
	// the kernel's autotuning.
	SendBuffer, RecvBuffer int
	// NoDelayOff leaves Nagle's algorithm on. It costs latency; off is right
	// in nearly every case.
	NoDelayOff bool
	// SQFlowControl keeps submission queue flow control on. By default the
	// host asks to disable it, which lets the controller end a read without a
	// response capsule; it stays on if the controller rejects that.
	SQFlowControl bool
	// ReceiveBuffer is the size in bytes of the memory that a connection
	// receives into. 0: 256 KiB. 16 KiB to 16 MiB.
	ReceiveBuffer int
}

func (c Config) withDefaults(opts map[string]string) (Config, error) {
	if c.MaxR2T == 0 {
		c.MaxR2T = 8
	}
	if c.MaxR2T < 1 || c.MaxR2T > 128 {
		return c, fmt.Errorf("nvme/tcp: Config.MaxR2T %d, from 1 to 128 is possible", c.MaxR2T)
	}
	if c.HPDA > 31 {
		return c, fmt.Errorf("nvme/tcp: Config.HPDA %d, 31 is the most", c.HPDA)
	}
	if c.ReceiveBuffer == 0 {
		c.ReceiveBuffer = 256 << 10
	}
	if c.ReceiveBuffer < 16<<10 || c.ReceiveBuffer > 16<<20 {
		return c, fmt.Errorf("nvme/tcp: Config.ReceiveBuffer %d, from 16 KiB to 16 MiB is possible", c.ReceiveBuffer)
	}
	for key, v := range opts {
		var err error
		switch key {
		case "hdr_digest":
			c.HeaderDigest, err = parseBool(v)
		case "data_digest":
			c.DataDigest, err = parseBool(v)
		case "tos":
			var n uint64
			n, err = strconv.ParseUint(v, 0, 8)
			c.TOS = uint8(n)
		case "priority":
			var n uint64
			n, err = strconv.ParseUint(v, 0, 31)
			c.Priority = int(n)
		}
		if err != nil {
			return c, fmt.Errorf("%w: %s: bad value %q", nvme.ErrAddress, key, v)
		}
	}
	return c, nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "on", "yes", "true":
		return true, nil
	case "0", "off", "no", "false":
		return false, nil
	}
	return false, strconv.ErrSyntax
}
