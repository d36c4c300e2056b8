package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/vfiouser"
)

const memlockHint = "or give -depth or -bs less; docs/real-drive.md says how to raise it for good"

// localHint is for what goes wrong with a local controller.
func localHint(err error, s *session) string {
	if s.address.Transport == transportSocket {
		return socketHint(err)
	}
	return driveHint(err, s.address.Traddr)
}

// driveHint is for drives. The errors of package pcie say what is wrong and what
// the machine needs; here is what to type.
func driveHint(err error, address string) string {
	switch {
	case errors.Is(err, pcie.ErrNoFunction), errors.Is(err, pcie.ErrNotNVMe):
		return "bench pci list shows the drives that there are"
	case errors.Is(err, pcie.ErrNotBound):
		return fmt.Sprintf("bench pci bind %s gives it to vfio-pci, if nothing uses it", address)
	case errors.Is(err, pcie.ErrNoIOMMU):
		return "-no-iommu goes without, and lets the drive overwrite any memory; see docs/real-drive.md"
	case errors.Is(err, pcie.ErrInUse):
		return "end what uses it, or measure another drive"
	case errors.Is(err, pcie.ErrPermission):
		return "docs/real-drive.md has the udev rule"
	case errors.Is(err, nvme.ErrGone):
		return "it does not answer: is it in its slot, and what does dmesg say?"
	case errors.Is(err, nvme.ErrFatal), errors.Is(err, nvme.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "the controller does not become ready: turn its power off and on, and look at dmesg"
	}
	return ""
}

// socketHint is for vfio-user.
func socketHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "nothing is there: start a server, such as bench target -vfio-user DIR, or correct the path in -target"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there, or it is no socket: start the server, or correct the path in -target"
	case errors.Is(err, fs.ErrPermission):
		return "that socket is another user's: run as that user, or as root"
	case errors.Is(err, syscall.ENOTSOCK), errors.Is(err, syscall.EPROTOTYPE):
		return "correct the path in -target"
	case errors.Is(err, vfiouser.ErrTimeout), errors.Is(err, nvme.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "the server does not answer: another driver may have it, as it takes one at a time"
	case errors.Is(err, vfiouser.ErrVersion), errors.Is(err, vfiouser.ErrProtocol), errors.Is(err, vfiouser.ErrDevice):
		return "what listens there does not seem to be an NVMe controller of vfio-user: correct the path in -target"
	case errors.Is(err, nvme.ErrGone):
		return "what listens there has hung up: correct the path in -target, or look at the server"
	}
	return ""
}
