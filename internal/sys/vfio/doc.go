// Package vfio makes the ioctls of the kernel's vfio and iommufd, whose
// structures and numbers are in linux/vfio.h and linux/iommufd.h (headers of
// Linux 6.12). Calls take descriptors and return errors that name the ioctl and
// unwrap to an Errno; they may block, with the scheduler told.
//
// What the kernel returns in chains of capabilities is checked before it is
// believed.
package vfio
