package vfuser

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

// Command is what a message asks for (enum vfio_user_command).
type Command uint16

// The commands. Those from DMARead to DMAWrite go from device to driver.
const (
	CmdVersion          Command = 1
	CmdDMAMap           Command = 2
	CmdDMAUnmap         Command = 3
	CmdDeviceInfo       Command = 4
	CmdRegionInfo       Command = 5
	CmdRegionIOFDs      Command = 6
	CmdIRQInfo          Command = 7
	CmdSetIRQs          Command = 8
	CmdRegionRead       Command = 9
	CmdRegionWrite      Command = 10
	CmdDMARead          Command = 11
	CmdDMAWrite         Command = 12
	CmdDeviceReset      Command = 13
	CmdDirtyPages       Command = 14 // of older drafts
	CmdRegionWriteMulti Command = 15
	CmdDeviceFeature    Command = 16
	CmdMigDataRead      Command = 17
	CmdMigDataWrite     Command = 18
)

var commandNames = [...]string{
	CmdVersion: "version", CmdDMAMap: "DMA map", CmdDMAUnmap: "DMA unmap", CmdDeviceInfo: "device info",
	CmdRegionInfo: "region info", CmdRegionIOFDs: "region io fds", CmdIRQInfo: "irq info", CmdSetIRQs: "set irqs",
	CmdRegionRead: "region read", CmdRegionWrite: "region write", CmdDMARead: "DMA read", CmdDMAWrite: "DMA write",
	CmdDeviceReset: "device reset", CmdDirtyPages: "dirty pages", CmdRegionWriteMulti: "region write multi",
	CmdDeviceFeature: "device feature", CmdMigDataRead: "migration data read", CmdMigDataWrite: "migration data write",
}

// String returns the command in words.
func (c Command) String() string {
	if int(c) < len(commandNames) && commandNames[c] != "" {
		return commandNames[c]
	}
	return fmt.Sprintf("unknown command %d", uint16(c))
}

// Flags of a header.
type Flags uint32

const (
	FlagReply   Flags = 1      // of the type in bits 3:0: 0 a command, 1 a reply
	FlagNoReply Flags = 1 << 4 // of a command: it is not answered
	FlagError   Flags = 1 << 5 // of a reply: Errno says why

	flagType Flags = 0xf
)

// HeaderSize is the size of a header in bytes.
const HeaderSize = 16

// Header begins every message (struct vfio_user_header).
type Header struct {
	ID      uint16 // of the command, chosen by who sends it; of a reply, the command's
	Command Command
	Size    uint32 // of the message with its header, in bytes; Conn.Send fills it in
	Flags   Flags
	Errno   uint32 // of a reply with FlagError
}

// Append appends the header to b.
func (h Header) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, h.ID)
	b = le.AppendUint16(b, uint16(h.Command))
	b = le.AppendUint32(b, h.Size)
	b = le.AppendUint32(b, uint32(h.Flags))
	return le.AppendUint32(b, h.Errno)
}

// ParseHeader reads a header. It checks that the size is at least that of the
// header and that the type is known.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, short("header", len(b), HeaderSize)
	}
	le := binary.LittleEndian
	h := Header{
		ID: le.Uint16(b), Command: Command(le.Uint16(b[2:])), Size: le.Uint32(b[4:]),
		Flags: Flags(le.Uint32(b[8:])), Errno: le.Uint32(b[12:]),
	}
	if h.Size < HeaderSize {
		return Header{}, malformed("header", "the message is %d bytes, less than its header", h.Size)
	}
	if h.Flags&flagType > FlagReply {
		return Header{}, malformed("header", "message type %d", h.Flags&flagType)
	}
	return h, nil
}

// IsReply tells whether the message is a reply.
func (h *Header) IsReply() bool { return h.Flags&flagType == FlagReply }

// WantsReply tells whether the message is a command that is to be answered.
func (h *Header) WantsReply() bool { return !h.IsReply() && h.Flags&FlagNoReply == 0 }

// Reply returns the header of the reply to a command.
func (h *Header) Reply() Header {
	return Header{ID: h.ID, Command: h.Command, Flags: FlagReply}
}

// ErrorReply returns the header, and with it the whole, of the reply that
// refuses a command.
func (h *Header) ErrorReply(e syscall.Errno) Header {
	if e == 0 {
		e = syscall.EINVAL
	}
	return Header{ID: h.ID, Command: h.Command, Flags: FlagReply | FlagError, Errno: uint32(e)}
}

// Err returns the error that a reply reports, or nil.
func (h *Header) Err() error {
	if h.Flags&FlagError == 0 {
		return nil
	}
	return &RemoteError{Command: h.Command, Errno: syscall.Errno(h.Errno)}
}

// RemoteError is an error that the peer has answered a command with. It unwraps
// to the peer's errno.
type RemoteError struct {
	Command Command
	Errno   syscall.Errno
}

func (e *RemoteError) Error() string {
	if e.Errno == 0 {
		return fmt.Sprintf("vfio-user: %v refused without an errno", e.Command)
	}
	return fmt.Sprintf("vfio-user: %v refused: %v", e.Command, e.Errno)
}

// Unwrap returns the errno.
func (e *RemoteError) Unwrap() error { return e.Errno }
