// Package vfio tests package pcie against QEMU's NVMe controller in a guest,
// behind an emulated Intel IOMMU and the kernel's own vfio-pci.
//
// What drives the controller is the command in worker, which runs in the guest;
// the tests here boot the machine, start it, and do to its devices what a person
// or a failing cable would.
package vfio
