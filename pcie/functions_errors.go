package pcie

import (
	"errors"
	"fmt"
	"strings"
)

// Kinds of errors in finding, binding and opening functions. Errors come back
// wrapped, or as one of the types below, which say what to do about it; test
// with errors.Is.
var (
	// ErrNoFunction: there is no such PCI function, or it went away.
	ErrNoFunction = errors.New("pcie: no such PCI function")
	// ErrNotNVMe: the function is not an NVMe controller.
	ErrNotNVMe = errors.New("pcie: not an NVMe controller")
	// ErrInUse: something holds the function or a namespace of it; see [InUseError].
	ErrInUse = errors.New("pcie: in use")
	// ErrNoIOMMU: nothing translates what the function does in memory.
	ErrNoIOMMU = errors.New("pcie: no IOMMU: turn on VT-d, AMD-Vi or the SMMU in the firmware, " +
		"and on Intel boot the kernel with intel_iommu=on")
	// ErrModule: the kernel lacks a module; see [ModuleError].
	ErrModule = errors.New("pcie: kernel module is not loaded")
	// ErrNotViable: other functions of the IOMMU group have drivers; see [GroupError].
	ErrNotViable = errors.New("pcie: IOMMU group is not viable")
	// ErrNotBound: the function is not bound to vfio-pci.
	ErrNotBound = errors.New("pcie: not bound to vfio-pci")
	// ErrPermission: a file cannot be opened or written; see [PermissionError].
	ErrPermission = errors.New("pcie: permission denied")
	// ErrMemlock: the limit of locked memory is too low; see [MemlockError].
	ErrMemlock = errors.New("pcie: limit of locked memory is too low")
	// ErrNoDriver: no driver of the kernel took a function that was given back.
	ErrNoDriver = errors.New("pcie: no driver takes the function")
)

// InUseError tells what holds a function. It is of kind ErrInUse.
type InUseError struct {
	Address string
	Uses    []Use // at least one
}

// Error implements error.
func (e *InUseError) Error() string {
	s := make([]string, len(e.Uses))
	for i, u := range e.Uses {
		s[i] = u.String()
	}
	return fmt.Sprintf("pcie: %s is in use: %s", e.Address, strings.Join(s, "; "))
}

// Is makes it of kind ErrInUse.
func (e *InUseError) Is(kind error) bool { return kind == ErrInUse }

// ModuleError names a module of the kernel that is missing. It is of kind
// ErrModule.
type ModuleError struct {
	Module string // as for modprobe
	For    string // what it is needed for
}

// Error implements error.
func (e *ModuleError) Error() string {
	return fmt.Sprintf("pcie: kernel module %s is not loaded, which %s needs: modprobe %[1]s", e.Module, e.For)
}

// Is makes it of kind ErrModule.
func (e *ModuleError) Is(kind error) bool { return kind == ErrModule }

// GroupError lists what keeps an IOMMU group from being used. It is of kind
// ErrNotViable.
type GroupError struct {
	Address string
	Group   int
	Members []Peer // those that have a driver which is not vfio's; may be empty
}

// Error implements error.
func (e *GroupError) Error() string {
	s := make([]string, len(e.Members))
	for i, m := range e.Members {
		s[i] = m.String()
	}
	who := strings.Join(s, ", ")
	if who == "" {
		who = "a function that is not known"
	}
	return fmt.Sprintf("pcie: IOMMU group %d of %s is not viable: bind these to vfio-pci or unbind them, as they share it: %s",
		e.Group, e.Address, who)
}

// Is makes it of kind ErrNotViable.
func (e *GroupError) Is(kind error) bool { return kind == ErrNotViable }

// PermissionError names the file that could not be opened or written. It is of
// kind ErrPermission.
type PermissionError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *PermissionError) Error() string {
	how := "run as root"
	if strings.HasPrefix(e.Path, "/dev/") {
		how = "run as root, or let a udev rule give the file to your group"
	}
	return fmt.Sprintf("pcie: no permission for %s (%s): %v", e.Path, how, e.Err)
}

// Is makes it of kind ErrPermission.
func (e *PermissionError) Is(kind error) bool { return kind == ErrPermission }

// Unwrap returns the cause.
func (e *PermissionError) Unwrap() error { return e.Err }

// MemlockError tells how much memory the process may lock, and how much it has
// to (RLIMIT_MEMLOCK, getrlimit(2)). It is of kind ErrMemlock.
type MemlockError struct {
	Need, Have uint64 // bytes
	Err        error  // of the system call
}

// Error implements error.
func (e *MemlockError) Error() string {
	return fmt.Sprintf("pcie: RLIMIT_MEMLOCK of %d bytes is too low, at least %d are needed (ulimit -l %d, or LimitMEMLOCK=%[2]d): %[4]v",
		e.Have, e.Need, (e.Need+1023)/1024, e.Err)
}

// Is makes it of kind ErrMemlock.
func (e *MemlockError) Is(kind error) bool { return kind == ErrMemlock }

// Unwrap returns the cause.
func (e *MemlockError) Unwrap() error { return e.Err }
