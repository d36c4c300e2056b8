package target

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// DefaultNQN is the name of the subsystem of a zero Config.
const DefaultNQN = "nqn.2026-01.io.github.qpoll:default"

// DefaultSize is the capacity in bytes of the namespace of a zero Config.
const DefaultSize = 64 << 20

// Config describes a target. The zero value works.
type Config struct {
	// Subsystems to begin with. Nil is one named DefaultNQN, with one
	// namespace of memory; an empty list is none.
	Subsystems []SubsystemConfig

	// Ports to begin with. Nil is a free port on 127.0.0.1; an empty list is
	// none.
	Ports []PortConfig

	// NoDiscovery leaves the discovery service out.
	NoDiscovery bool

	// Referrals to other discovery services, part of the discovery log.
	Referrals []Referral

	// Transport is how the target speaks NVMe/TCP.
	Transport Transport

	// Limits bound what hosts can take.
	Limits Limits

	// Logger receives what happens to connections and controllers; nothing is
	// logged without one.
	Logger *slog.Logger

	// Events is told what happens.
	Events *Events
}

// Transport is how the target speaks NVMe/TCP. The zero value works.
type Transport struct {
	// InCapsule is how much data the capsule of an I/O command may carry, in
	// bytes; a multiple of 16, at most 1 MiB. 0 is 16 KiB; a negative one is
	// none. Capsules of the admin queue carry 8 KiB.
	InCapsule int

	// MaxH2CData is the most data in one H2CData PDU, bytes (MAXH2CDATA): a
	// multiple of 4, 4096 to 16 MiB. 0 is 1 MiB.
	MaxH2CData uint32

	// MaxC2HData is the most data in one C2HData PDU, bytes: a multiple of 4. 0
	// is no limit, so that a read is answered with one.
	MaxC2HData uint32

	// MaxR2T is how many R2T PDUs may be outstanding for a command, 1 to 16, if
	// the host takes as many. 0 is 1.
	MaxR2T int

	// R2TLength is the most data that one R2T asks for, bytes: a multiple of
	// 4. 0 is no limit.
	R2TLength uint32

	// CPDA is the alignment of data in PDUs to the target, in dwords, 0's
	// based, 0 to 31. Linux' host hangs up on any but 0.
	CPDA uint8

	// HeaderDigest and DataDigest say whether digests are used.
	HeaderDigest, DataDigest Digest

	// AlwaysSuccess sets the SUCCESS flag in place of a response capsule even
	// if the host has not turned submission queue flow control off. The
	// specification does not allow that; SPDK's target does it.
	AlwaysSuccess bool

	// Congestion names the TCP congestion control of connections; empty is the
	// system's default. BBR, where it is that, paces even over loopback.
	Congestion string

	// SendBuffer and RecvBuffer are SO_SNDBUF and SO_RCVBUF in bytes; 0 leaves
	// them to the kernel.
	SendBuffer, RecvBuffer int

	// Staging is the memory that a poller receives into, in bytes, 16 KiB to
	// 16 MiB; 0 is 256 KiB.
	Staging int
}

// Digest says whether a digest is used on a connection.
type Digest uint8

const (
	DigestAllowed  Digest = iota // if the host asks for it
	DigestRequired               // hosts that do not ask for it are turned away
	DigestDeclined               // never
)

// Limits bound what hosts can take. The zero value works.
type Limits struct {
	// Connections is how many there may be at a time; 0 is 1024.
	Connections int

	// Handshakes is how many connections may be waiting for ICReq or Connect
	// at a time; 0 is 256.
	Handshakes int

	// HandshakeTime is how long a connection may take until its Connect
	// command has come; 0 is 10 s.
	HandshakeTime time.Duration

	// Linger is how long a connection that the target terminates is kept for
	// the host to read why; 0 is 1 s.
	Linger time.Duration

	// BufferMemory is how much memory in bytes the data of commands may take
	// up, over all connections; commands wait for it. In-capsule data is not
	// counted. 0 is 256 MiB.
	BufferMemory int64

	// ConnectionBuffers is the same for one connection; 0 is 32 MiB. It is at
	// least the largest transfer of a command.
	ConnectionBuffers int64

	// TransferTime is how long a host may leave data that it was asked for
	// unsent, or data that it has asked for unread, while commands of others
	// wait for that memory; then the connection is closed. 0 is 30 s.
	TransferTime time.Duration
}

// SubsystemConfig describes a subsystem. The zero value of all fields but NQN
// works.
type SubsystemConfig struct {
	// NQN is the name of the subsystem, up to 223 bytes.
	NQN string

	// Serial, Model and Firmware are reported as they are, cut off at 20, 40
	// and 8 bytes. Empty: made from the NQN, "qpoll target", and "1".
	Serial, Model, Firmware string

	// Hosts are the NQNs of those that may connect. Nil is any.
	Hosts []string

	// MaxNamespaces is how many namespaces there may be at a time; 0 is 1024.
	MaxNamespaces int

	// MaxNSID is the largest NSID (NN); 0 is MaxNamespaces.
	MaxNSID uint32

	// MaxTransfer is the most data of a command in bytes (MDTS): a power of
	// two, 4 KiB to 4 MiB. 0 is 1 MiB.
	MaxTransfer uint32

	// IOQueues is how many I/O queues a controller may have, 1 to 65535; 0 is
	// 128.
	IOQueues int

	// QueueEntries is the size of the largest queue in entries (MQES+1), 2 to
	// 4096; 0 is 1024.
	QueueEntries int

	// Controllers is how many there may be at a time; 0 is 256. Controller IDs
	// are taken from FirstController on, so that subsystems that serve the same
	// namespaces from several targets can be told apart; 0 is 1.
	Controllers     int
	FirstController uint16

	// KeepAlive says how the keep alive timer works.
	KeepAlive KeepAlive

	// QuiesceTime is what the target takes to stop working on commands of an
	// association that has ended (CQT), up to 65 s, rounded up to
	// milliseconds. It is reported, and kept to: commands that are held in a
	// backend go on until then, and are given up at its end. 0 is not
	// reported, and what is held is given up at once.
	QuiesceTime time.Duration

	// NoANA leaves asymmetric namespace access out of what is reported. States
	// cannot be set then.
	NoANA bool

	// ANAGroups is the number of ANA groups (ANAGRPMAX); 0 is 32.
	ANAGroups uint32

	// TransitionTime is how long an ANA group may be in the change state
	// (ANATT), in seconds, rounded up; 0 is 10 s.
	TransitionTime time.Duration

	// NoFused leaves the fused operation Compare and Write out.
	NoFused bool

	// Namespaces to begin with.
	Namespaces []NamespaceConfig
}

// KeepAlive is how a subsystem treats keep alive timers.
type KeepAlive struct {
	// Granularity is the unit of the timer (KAS), in steps of 100 ms; 0 is
	// 100 ms. Timeouts are rounded up to it.
	Granularity time.Duration

	// Max bounds the timeout; 0 is no bound. A host that asks for more, or for
	// none, gets it.
	Max time.Duration

	// Commands restart the timer like Keep Alive does (traffic based keep
	// alive, TBKAS).
	Traffic bool

	// Ignore lets a timeout pass without consequences.
	Ignore bool
}

// NamespaceConfig describes a namespace. The zero value of all fields but
// Backend works.
type NamespaceConfig struct {
	// NSID identifies the namespace; 0 is the lowest that is free.
	NSID uint32

	// BlockSize is the size of a logical block in bytes: a power of two, 512
	// to 64 KiB. 0 is 512.
	BlockSize uint32

	// Backend keeps the data. The target closes it when its last namespace is
	// gone, or when the target is closed, and nothing uses it any more.
	Backend backend.Backend

	// UUID, NGUID and EUI64 are reported as they are. If all of them are zero,
	// a UUID is made from the NQN and the NSID, the same in each run.
	UUID, NGUID [16]byte
	EUI64       [8]byte

	// ANAGroup is the ANA group, 1 to SubsystemConfig.ANAGroups; 0 is 1.
	ANAGroup uint32

	// Private does not report the namespace as one that several controllers
	// may share (NMIC).
	Private bool

	// ReadOnly makes writes fail and reports the namespace as write protected.
	ReadOnly bool

	// Boundary is the optimal I/O boundary in blocks (NOIOB); 0 is none.
	Boundary uint16

	// WriteGranularity and WriteAlignment, and the same for deallocation, are
	// in blocks (NPWG, NPWA, NPDG, NPDA); 0 is not reported. OptimalWrite is
	// NOWS.
	WriteGranularity, WriteAlignment           uint16
	DeallocateGranularity, DeallocateAlignment uint16
	OptimalWrite                               uint16
}

// PortConfig describes a port: an address where the target listens.
type PortConfig struct {
	// Address to listen at, such as 127.0.0.1:4420 or [::]:4420. Port 0 is
	// one that is free, and stays the same when the target is restarted. The
	// zero value is 127.0.0.1:0.
	Address netip.AddrPort

	// ID is the port's identifier (PORTID); 0 is the lowest that is free.
	ID uint16

	// Advertise is the address to report in the discovery log; the zero value
	// is Address, or for an unspecified one that which the host has connected
	// to.
	Advertise netip.AddrPort

	// Subsystems are the NQNs of those that can be reached here. Nil is all.
	Subsystems []string

	// ANA is the state of ANA groups here; those not named are optimized.
	ANA map[uint32]nvme.ANAState

	// Backlog is how many connections may wait to be accepted; 0 is 128.
	Backlog int
}

// Referral is an entry of the discovery log that points to another discovery
// service.
type Referral struct {
	Address netip.AddrPort
	ID      uint16 // PORTID
	NQN     string // empty is the well-known discovery NQN
}
