package tcp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// sgl checks the SGL descriptor of a command.
func sgl(want nvme.SGLDescriptor) tcptest.Check {
	return func(p *pdu.PDU) error {
		cmd := tcptest.Command(p)
		if got := cmd.SGL(); got != want || cmd.Flags&nvme.FlagPSDTMask != nvme.FlagSGL {
			return fmt.Errorf("SGL %+v with flags %#x, want %+v", got, cmd.Flags, want)
		}
		return nil
	}
}

// Writes on an I/O queue carry their data in the capsule up to what IOCCSZ
// allows, and wait for R2Ts above that.
func TestWireCase08IOCCSZ(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 16, 512, 1024, 4096, 8192, 16 << 10, 1 << 20} {
		for _, ddgst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,ddgst=%v", limit, ddgst), func(t *testing.T) {
				cfg := digestRig(ddgst, ddgst)
				cfg.inCapsule = limit
				cfg.icresp.CPDA = 7
				r := newRig(t, cfg)
				for _, size := range []int{512, 1024, 1536, 4096, 8192, 8704, 16 << 10, 128 << 10} {
					for _, vectored := range []bool{false, true} {
						oneWrite(t, r, size, vectored, size <= limit)
					}
				}
			})
		}
	}
}

func oneWrite(t *testing.T, r *rig, size int, vectored, inCapsule bool) {
	t.Helper()
	data := pattern(make([]byte, size), uint64(size))
	var o *op
	if vectored {
		o = r.writeV(cutUp(rand.New(rand.NewPCG(uint64(size), 8)), data), 3)
	} else {
		o = r.write(data, 3)
	}
	checks := []tcptest.Check{tcptest.DataLen(0), sgl(nvme.SGLTransport(uint32(size)))}
	if inCapsule {
		checks = []tcptest.Check{tcptest.Data(data), sgl(nvme.SGLInCapsule(0, uint32(size)))}
	}
	var q *tcptest.Request
	var got []byte
	r.play(func(c *tcptest.Conn) {
		q = c.ExpectCommand(nvme.OpWrite, checks...)
		got = q.Receive(0, 1)
	})
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes: data differs", size)
	}
	r.feed(q.Response(nvme.StatusSuccess, 0))
	o.want(t, nvme.StatusSuccess)
}

// With an offset for in-capsule data, which NVMe/TCP has no place for, all data
// goes by R2T.
func TestWireCase08ICDOFF(t *testing.T) {
	t.Parallel()
	for _, icdoff := range []uint16{1, 4, 0xffff} {
		r := newRig(t, rigConfig{inCapsule: 8192, icdoff: icdoff})
		for _, size := range []int{512, 4096} {
			oneWrite(t, r, size, false, false)
		}
	}
}

// Connect carries its data in the capsule on every queue, whatever IOCCSZ says,
// and with every alignment and digest.
func TestWireCase08Connect(t *testing.T) {
	t.Parallel()
	digestCases(t, func(t *testing.T, cfg rigConfig) {
		cfg.script = func(c *tcptest.Conn) {
			c.Handshake(cfg.icresp)
			r := c.ExpectCommand(nvme.OpFabrics, tcptest.DataLen(nvme.ConnectDataSize), sgl(nvme.SGLInCapsule(0, nvme.ConnectDataSize)))
			var d nvme.ConnectData
			if err := d.UnmarshalBinary(r.Data); err != nil {
				c.Fail(err)
			}
			host, _ := d.HostName()
			sub, _ := d.SubsystemNQN()
			cc, err := nvme.ParseConnect(&r.Cmd)
			if err != nil || host != hostNQN || sub != subNQN || cc.QID != 1 || cc.SQSize != 31 || cc.KeepAlive != 0 {
				c.Fail(fmt.Errorf("Connect of %q to %q: %+v, %v", host, sub, cc, err))
			}
			r.Complete(nvme.StatusSuccess, 1)
			c.HandOver()
		}
		newRig(t, cfg)
	})
}

// The admin queue takes 8 KiB whatever IOCCSZ says.
func TestWireCase08Admin(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, 512, 64 << 10} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			k := &tcptest.Controller{InCapsule: limit}
			got := make(chan []byte, 1)
			inCapsule := make(chan bool, 1)
			k.Override = func(r *tcptest.Request) bool {
				if r.Cmd.Opcode != nvme.AdminSecuritySend {
					return false
				}
				inCapsule <- len(r.Data) > 0
				got <- r.Receive(0, 1)
				r.Complete(nvme.StatusSuccess, 0)
				return true
			}
			f := open(t, k)
			for _, size := range []int{4, 512, 1020, 1024, 4096, 8192, 8196, 16 << 10} {
				data := pattern(make([]byte, size), uint64(size))
				if _, err := f.c.Admin(f.ctx(), &nvme.Command{Opcode: nvme.AdminSecuritySend}, data); err != nil {
					t.Fatal(err)
				}
				if in := <-inCapsule; in != (size <= 8192) {
					t.Errorf("%d bytes in the capsule: %v", size, in)
				}
				if !bytes.Equal(<-got, data) {
					t.Errorf("%d bytes: data differs", size)
				}
			}
		})
	}
}

// Data of commands other than writes obeys the same limit.
func TestWireCase08OtherCommands(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 4096} {
		r := newRig(t, rigConfig{inCapsule: limit})
		check := func(o *op, op nvme.Opcode, size int) {
			t.Helper()
			n := 0
			if size <= limit {
				n = size
			}
			q := r.command(op, tcptest.DataLen(n))
			r.play(func(*tcptest.Conn) { q.Receive(0, 1) })
			r.feed(q.Response(nvme.StatusSuccess, 0))
			o.want(t, nvme.StatusSuccess)
		}
		o := r.ops.add("compare")
		r.must(r.q.Compare(make([]byte, 512), 0, 1, opDone, o))
		check(o, nvme.OpCompare, 512)
		o = r.ops.add("deallocate")
		r.must(r.q.Deallocate([]nvme.DSMRange{{Length: 1}, {LBA: 5, Length: 2}}, opDone, o))
		check(o, nvme.OpDatasetManagement, 32)
		o = r.raw(nvme.Command{Opcode: nvme.OpReservationRegister, NSID: 1}, nvme.Data{Buf: make([]byte, 16), Len: 16, Dir: nvme.DirOut})
		check(o, nvme.OpReservationRegister, 16)
	}
}
