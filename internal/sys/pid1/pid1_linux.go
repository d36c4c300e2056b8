// Package pid1 holds the system calls that only the init process of a test
// guest makes. Nothing outside internal/guest has a use for it.
package pid1

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system that has no device, such as proc or configfs.
func Mount(fstype, dir string) error {
	if err := unix.Mount(fstype, dir, fstype, 0, ""); err != nil {
		return &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	return nil
}

// LoadModule loads the uncompressed kernel module in the file, with parameters
// as on the command line of insmod. A module that is loaded already is no error.
func LoadModule(path, params string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), params, 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "insmod", Path: path, Err: err}
	}
	return nil
}

// KillGroup sends a signal to the process group. A group that has ended is no
// error.
func KillGroup(pgid int, sig unix.Signal) error {
	if err := unix.Kill(-pgid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// Reap waits for children, its own and those that other processes left behind,
// until the one with the given pid has ended, and returns its wait status.
func Reap(pid int) (unix.WaitStatus, error) {
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("wait4", err)
		case got == pid && (ws.Exited() || ws.Signaled()):
			return ws, nil
		}
	}
}

// PowerOff ends the machine. It returns only if that failed.
func PowerOff() error {
	unix.Sync()
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	if err == nil {
		// The call may return before the machine stops.
		time.Sleep(time.Minute)
	}
	return os.NewSyscallError("reboot", err)
}

// Release returns the kernel release, as uname -r prints it.
func Release() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", os.NewSyscallError("uname", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}
