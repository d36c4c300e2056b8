//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie"
)

// patience is far longer than anything takes.
const patience = time.Minute

// admin is the least that can send a command: an admin queue pair of 16 entries,
// and a page for data, in one mapping.
type admin struct {
	dev    pcie.Device
	mem    []byte
	mapped uint64 // as MapDMA was told
	iova   uint64 // as the controller is told
	bells  mmio.Window
	tail   uint32
	head   uint32
	phase  byte
}

const (
	depth  = 16
	sqAt   = 0
	cqAt   = 4096
	dataAt = 8192
	memory = 2 << 20 // one huge page
)

var le = binary.LittleEndian

// newAdmin maps memory and starts the controller.
func newAdmin(dev pcie.Device) (*admin, error) {
	flags := unix.MAP_SHARED | unix.MAP_ANONYMOUS
	physical, bare := dev.(pcie.PhysicalAddresser)
	if bare {
		flags |= unix.MAP_HUGETLB
	}
	mem, err := sys.Mmap(-1, 0, memory, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	clear(mem)
	r := dev.IOVARanges()
	a := &admin{dev: dev, mem: mem, mapped: r[len(r)-1].First + 1<<30&^0xfff}
	if err := dev.MapDMA(pcie.Memory{Bytes: mem, FD: -1}, a.mapped); err != nil {
		return nil, errors.Join(err, sys.Munmap(mem))
	}
	a.iova = a.mapped
	if bare {
		a.iova, err = physical.PhysicalAddress(mem)
		if err != nil {
			return nil, errors.Join(err, a.close())
		}
	}
	if a.bells, err = dev.Map(0, 0x1000, 8); err == nil {
		err = a.enable()
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// enable resets the controller and turns it on (Base Specification 3.5.1).
func (a *admin) enable() error {
	if err := errors.Join(a.dev.Write32(0x14, 0), a.ready(0)); err != nil {
		return err
	}
	clear(a.mem)
	a.tail, a.head, a.phase = 0, 0, 1
	return errors.Join(
		a.dev.SetBusMaster(true),
		a.dev.Write32(0x24, (depth-1)<<16|(depth-1)),
		a.dev.Write64(0x28, a.iova+sqAt),
		a.dev.Write64(0x30, a.iova+cqAt),
		a.dev.Write32(0x14, 6<<16|4<<20|1),
		a.ready(1),
	)
}

// ready waits for CSTS.RDY.
func (a *admin) ready(want uint32) error {
	end := time.Now().Add(patience)
	for {
		v, err := a.dev.Read32(0x1c)
		switch {
		case err != nil:
			return err
		case v&1 == want:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("CSTS is %#x, want ready %d", v, want)
		}
		time.Sleep(time.Millisecond)
	}
}

// post sends a command with one PRP entry.
func (a *admin) post(opcode byte, nsid, cdw10 uint32, prp uint64) error {
	e := a.mem[sqAt+64*a.tail:][:64]
	clear(e)
	e[0] = opcode
	le.PutUint16(e[2:], uint16(a.tail))
	le.PutUint32(e[4:], nsid)
	le.PutUint64(e[24:], prp)
	le.PutUint32(e[40:], cdw10)
	a.tail = (a.tail + 1) % depth
	mmio.StoreFence()
	return a.bells.Write32(0, a.tail)
}

// reap waits for a completion and returns its status.
func (a *admin) reap() (status uint16, err error) {
	c := mmio.NewWindow(a.mem[cqAt:])
	at := uint64(16 * a.head)
	for end := time.Now().Add(patience); ; {
		v, err := c.Read32(at + 12)
		if err != nil {
			return 0, err
		}
		if byte(v>>16)&1 == a.phase {
			status = uint16(v >> 17)
			break
		}
		if time.Now().After(end) {
			return 0, errors.New("a command does not complete")
		}
		if a.dev.Gone() {
			return 0, pcie.ErrGone
		}
	}
	if a.head++; a.head == depth {
		a.head, a.phase = 0, a.phase^1
	}
	return status, a.bells.Write32(4, a.head)
}

// identify reads the controller's data into the page at prp.
func (a *admin) identify(prp uint64) (status uint16, err error) {
	if err := a.post(0x06, 0, 1, prp); err != nil {
		return 0, err
	}
	return a.reap()
}

func (a *admin) close() error {
	return errors.Join(a.dev.UnmapDMA(a.mapped, memory), sys.Munmap(a.mem))
}
