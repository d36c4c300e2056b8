// Package vfuser has the messages of the vfio-user protocol, version 0.1, as
// libvfio-user, QEMU and SPDK speak it over a unix socket: a device in one
// process, its driver in another.
//
// Each message is a [Header], a payload, and possibly file descriptors
// (SCM_RIGHTS). A [Conn] sends and receives whole messages and bounds what the
// peer can make it hold; it knows nothing of requests and replies. Payloads are
// structures with an Append method, and a Parse function that checks every
// length and count; neither keeps the bytes it is given.
//
// A driver sends [Version] first, then DeviceInfo, RegionInfo for each region,
// IRQInfo, and maps its memory with DMAMap; it answers nothing itself unless
// the device reads its memory by messages, which needs no support where every
// mapping comes with a descriptor. A client is:
//
//	c := vfuser.NewConn(unixConn, vfuser.MaxFDs)
//	err := c.Send(vfuser.Header{ID: 1, Command: vfuser.CmdDeviceInfo}, vfuser.DeviceInfo{...}.Append(nil), nil)
//	m, err := c.Receive() // until m.ID is 1 and m.IsReply()
//	defer m.CloseFDs()
//	err = m.Err()         // *RemoteError, the peer's errno
//	info, err := vfuser.ParseDeviceInfo(m.Payload)
//
// # Ways of the peers
//
//   - A reply echoes ID and Command; libvfio-user's did not always have the
//     command in it, so go by the ID.
//   - An error reply is a header alone: FlagError and the errno.
//   - Version may come without capabilities; the defaults are one descriptor a
//     message and 1 MiB of data. The JSON text ends in a zero byte.
//   - SPDK's client has every ID zero, sends more bytes than the structure with
//     DeviceRegionInfo, and takes as many descriptors as areas there are. One
//     area is therefore what every peer agrees on.
//   - libvfio-user sends one descriptor for all areas of a region. The offset
//     in it is RegionInfo.Offset plus that of the area.
//   - ArgSize in a reply may say more than came: ask again with that much.
//
// The structures within are those of the kernel's vfio interface,
// linux/vfio.h; names are given in the comments.
package vfuser
