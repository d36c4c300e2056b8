// Package blkdev holds ioctls of block devices and of NVMe controllers that
// programs in a test guest make. Nothing outside internal/guest has a use for it.
package blkdev

import (
	"os"
	"runtime"
	"structs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/fs.h and linux/nvme_ioctl.h.
const (
	blkZeroOut   = 0x127f
	nvmeAdminCmd = 0xc0484e41
)

// ZeroOut has the kernel zero a range in bytes, by Write Zeroes where the device
// has it. Offset and length are multiples of the block size.
func ZeroOut(f *os.File, off, length uint64) error {
	arg := &[2]uint64{off, length}
	_, err := ioctl(f, blkZeroOut, unsafe.Pointer(arg))
	return err
}

// Command is an admin command for the kernel's passthrough. Data is read or
// written as bits 1:0 of the opcode say.
type Command struct {
	Opcode       uint8
	NSID         uint32
	CDW10, CDW11 uint32
	Data         []byte
}

// passthru is struct nvme_passthru_cmd.
type passthru struct {
	_           structs.HostLayout
	opcode      uint8
	flags       uint8
	_           uint16
	nsid        uint32
	cdw2, cdw3  uint32
	metadata    uint64
	addr        uint64
	metadataLen uint32
	dataLen     uint32
	cdw         [6]uint32 // 10 to 15
	timeoutMS   uint32
	result      uint32
}

var _ [72]byte = [unsafe.Sizeof(passthru{})]byte{}

// Admin sends an admin command through an open controller or namespace. It
// returns the NVMe status, of which the phase bit has been taken off, and dword
// 0 of the completion.
func Admin(f *os.File, c Command) (status uint16, result uint32, err error) {
	p := &passthru{
		opcode: c.Opcode, nsid: c.NSID, dataLen: uint32(len(c.Data)),
		cdw: [6]uint32{c.CDW10, c.CDW11},
	}
	if len(c.Data) > 0 {
		var pin runtime.Pinner
		pin.Pin(&c.Data[0])
		defer pin.Unpin()
		p.addr = uint64(uintptr(unsafe.Pointer(&c.Data[0])))
	}
	st, err := ioctl(f, nvmeAdminCmd, unsafe.Pointer(p))
	return uint16(st), p.result, err
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	runtime.KeepAlive(f)
	if errno != 0 {
		return 0, &os.PathError{Op: "ioctl", Path: f.Name(), Err: errno}
	}
	return int(n), nil
}
