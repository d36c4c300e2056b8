// Package vfiouser drives an NVMe controller in another process over the
// vfio-user protocol: SPDK's NVMe-oF target with a vfio-user listener, or the
// server of package pcietest. The doorbells and all memory for DMA are shared
// with that process; registers are accessed by messages over a unix socket.
//
// The server is trusted with the memory that it is given, as it can write to it
// at any time, but not with anything else: whatever it sends, or leaves out, is
// an error of a method, never a panic, a hang or a leak. A server that closes the
// connection, does not answer in time, or breaks the protocol is gone, and its
// device with it.
package vfiouser
