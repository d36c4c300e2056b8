package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Memfd returns a file of size bytes that is memory and has no name in any
// directory (memfd_create(2)), to be mapped by this process and others that are
// given it. name is for looking at; flags are MFD_* beyond MFD_CLOEXEC.
func Memfd(name string, size int64, flags int) (fd int, err error) {
	fd, err = unix.MemfdCreate(name, flags|unix.MFD_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	opened(fd)
	if err := unix.Ftruncate(fd, size); err != nil {
		_ = Close(fd)
		return -1, os.NewSyscallError("ftruncate", err)
	}
	return fd, nil
}

// SealSize keeps the size of a memory file, made with MFD_ALLOW_SEALING, as it is
// for whoever else has it (F_ADD_SEALS).
func SealSize(fd int) error {
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	return os.NewSyscallError("fcntl F_ADD_SEALS", err)
}

// SetNonblock makes a descriptor non-blocking, for everyone who has it.
func SetNonblock(fd int) error {
	return os.NewSyscallError("fcntl F_SETFL", unix.SetNonblock(fd, true))
}

// FileSize returns the size of a file in bytes (fstat(2)).
func FileSize(fd int) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return st.Size, nil
}
