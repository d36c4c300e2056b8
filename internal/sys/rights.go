package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RightsSpace is how many bytes of control message n descriptors take up
// (SCM_RIGHTS).
func RightsSpace(n int) int { return unix.CmsgSpace(4 * n) }

// Rights returns the control message that passes descriptors over a unix
// socket (SCM_RIGHTS), nil for none. They stay the caller's.
func Rights(fds ...int) []byte {
	if len(fds) == 0 {
		return nil
	}
	return unix.UnixRights(fds...)
}

// ErrControl means that control messages hold something else than descriptors.
var ErrControl = errors.New("control message of an unknown kind")

// ParseRights returns the descriptors in received control messages; the caller
// owns them. On an error there are none: those that had come are closed.
func ParseRights(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	var fds []int
	for i := range msgs {
		got, e := unix.ParseUnixRights(&msgs[i])
		if e != nil {
			err = ErrControl
		}
		fds = append(fds, got...)
	}
	for _, fd := range fds {
		opened(fd)
	}
	if err == nil {
		return fds, nil
	}
	for _, fd := range fds {
		_ = Close(fd)
	}
	return nil, err
}
