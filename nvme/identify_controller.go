package nvme

import "structs"

// IdentifyController is the Identify Controller data structure, 4096 bytes
// (Base Specification 2.1, figure "Identify – Identify Controller Data
// Structure, I/O Command Set Independent"). Fields bear the specification's
// names; reserved bytes are dropped on decoding and zero on encoding. A field
// that an older controller does not know reads as 0.
type IdentifyController struct {
	_           structs.HostLayout
	VID         uint16    // PCI vendor ID
	SSVID       uint16    // PCI subsystem vendor ID
	SN          [20]byte  // serial number, ASCII; see SerialNumber
	MN          [40]byte  // model number, ASCII; see ModelNumber
	FR          [8]byte   // firmware revision, ASCII; see FirmwareRevision
	RAB         uint8     // recommended arbitration burst, power of two
	IEEE        [3]byte   // OUI, least significant byte first
	CMIC        uint8     // CMIC... bits
	MDTS        uint8     // maximum data transfer size; see MaxTransferSize
	CNTLID      uint16    // controller ID
	VER         VS        // version
	RTD3R       uint32    // runtime D3 resume latency, us
	RTD3E       uint32    // runtime D3 entry latency, us
	OAES        uint32    // AsyncEventConfig bits that are supported
	CTRATT      uint32    // CTRATT... bits
	RRLS        uint16    // read recovery levels supported, one bit each
	BPCAP       uint8     // boot partition capabilities
	_           [1]byte   //
	NSSL        uint32    // NVM subsystem shutdown latency, us
	_           [2]byte   //
	PLSI        uint8     // power loss signaling information
	CNTRLTYPE   uint8     // a ControllerType... value
	FGUID       [16]byte  // FRU globally unique identifier, big endian
	CRDT        [3]uint16 // command retry delay times, 100 ms; see RetryDelay
	CRCAP       uint8     // controller reachability capabilities
	_           [118]byte //
	NVMSR       uint8     // NVM subsystem report
	VWCI        uint8     // VPD write cycle information
	MEC         uint8     // management endpoint capabilities
	OACS        uint16    // OACS... bits
	ACL         uint8     // abort command limit, minus one
	AERL        uint8     // asynchronous event request limit, minus one
	FRMW        uint8     // firmware updates; see FirmwareSlots
	LPA         uint8     // LPA... bits
	ELPE        uint8     // error log page entries, minus one
	NPSS        uint8     // number of power states, minus one
	AVSCC       uint8     // admin vendor specific command configuration
	APSTA       uint8     // bit 0: autonomous power state transitions
	WCTEMP      uint16    // warning composite temperature threshold, kelvin
	CCTEMP      uint16    // critical composite temperature threshold, kelvin
	MTFA        uint16    // maximum time for firmware activation, 100 ms
	HMPRE       uint32    // host memory buffer preferred size, 4 KiB
	HMMIN       uint32    // host memory buffer minimum size, 4 KiB
	TNVMCAP     Uint128   // total NVM capacity, bytes
	UNVMCAP     Uint128   // unallocated NVM capacity, bytes
	RPMBS       uint32    // replay protected memory block support
	EDSTT       uint16    // extended device self-test time, minutes
	DSTO        uint8     // device self-test options
	FWUG        uint8     // firmware update granularity, 4 KiB; 0 unknown, 255 none
	KAS         uint16    // keep alive granularity, 100 ms; 0 not supported
	HCTMA       uint16    // bit 0: host controlled thermal management
	MNTMT       uint16    // minimum thermal management temperature, kelvin
	MXTMT       uint16    // maximum thermal management temperature, kelvin
	SANICAP     uint32    // SANICAP... bits
	HMMINDS     uint32    // host memory buffer minimum descriptor entry size, 4 KiB
	HMMAXD      uint16    // host memory maximum descriptor entries
	NSETIDMAX   uint16    // NVM set identifier maximum
	ENDGIDMAX   uint16    // endurance group identifier maximum
	ANATT       uint8     // ANA transition time, s
	ANACAP      uint8     // ANACAP... bits
	ANAGRPMAX   uint32    // ANA group identifier maximum
	NANAGRPID   uint32    // number of ANA group identifiers
	PELS        uint32    // persistent event log size, 64 KiB
	DID         uint16    // domain identifier
	KPIOC       uint8     // key per I/O capabilities
	_           [1]byte   //
	MPTFAWR     uint16    // max time for firmware activation without reset, 100 ms
	_           [6]byte   //
	MEGCAP      Uint128   // max endurance group capacity, bytes
	TMPTHHA     uint8     // temperature threshold hysteresis attributes
	_           [1]byte   //
	CQT         uint16    // command quiesce time, ms; see CommandQuiesceTime
	_           [124]byte //
	SQES        uint8     // submission queue entry sizes, powers of two: minimum 3:0, maximum 7:4
	CQES        uint8     // completion queue entry sizes, likewise
	MAXCMD      uint16    // maximum outstanding commands of a queue; 0 not told
	NN          uint32    // number of namespaces: the largest NSID
	ONCS        uint16    // ONCS... bits
	FUSES       uint16    // bit 0: fused compare and write
	FNA         uint8     // FNA... bits
	VWC         uint8     // volatile write cache: bit 0 present, 2:1 flush behaviour
	AWUN        uint16    // atomic write unit normal, blocks minus one
	AWUPF       uint16    // atomic write unit power fail, blocks minus one
	ICSVSCC     uint8     // I/O command set vendor specific command configuration
	NWPC        uint8     // namespace write protection capabilities
	ACWU        uint16    // atomic compare and write unit, blocks minus one
	CDFS        uint16    // copy descriptor formats supported, one bit each
	SGLS        uint32    // SGL support; SGLS... bits
	MNAN        uint32    // maximum number of allowed namespaces; 0 as NN
	MAXDNA      Uint128   // maximum domain namespace attachments
	MAXCNA      uint32    // maximum I/O controller namespace attachments
	OAQD        uint32    // optimal aggregated queue depth
	RHIRI       uint8     // recommended host-initiated refresh interval, days
	HIRT        uint8     // host-initiated refresh time, minutes
	CMMRTD      uint16    // controller maximum memory range tracking descriptors
	NMMRTD      uint16    // subsystem maximum memory range tracking descriptors
	MINMRTG     uint8     // minimum memory range tracking granularity
	MAXMRTG     uint8     // maximum memory range tracking granularity
	TRATTR      uint8     // tracking attributes
	_           [1]byte   //
	MCUDMQ      uint16    // maximum controller user data migration queues
	MNSUDMQ     uint16    // maximum subsystem user data migration queues
	MCMR        uint16    // maximum controller data queue memory ranges
	NMCMR       uint16    // subsystem maximum controller data queue memory ranges
	MCDQPC      uint16    // maximum controller data queue PRP count
	_           [180]byte //
	SUBNQN      [256]byte // subsystem NQN; see SubsystemNQN
	_           [768]byte //
	IOCCSZ      uint32    // I/O command capsule size, 16 bytes; see CapsuleDataSize
	IORCSZ      uint32    // I/O response capsule size, 16 bytes
	ICDOFF      uint16    // in-capsule data offset, 16 bytes
	FCATT       uint8     // FCATT... bits
	MSDBD       uint8     // maximum SGL data block descriptors in a capsule; 0 no limit
	OFCS        uint16    // bit 0: Disconnect command
	DCTYPE      uint8     // a DiscoveryType... value
	_           [241]byte //
	PSD         [32]PowerState
	VendorBytes [1024]byte // vendor specific
}

// AppendBinary appends the 4096 bytes of the structure.
func (c *IdentifyController) AppendBinary(b []byte) ([]byte, error) { return encode(b, c) }

// UnmarshalBinary reads the structure from the first 4096 bytes of b.
func (c *IdentifyController) UnmarshalBinary(b []byte) error {
	return decode("identify controller", b, c)
}

// PowerState is a power state descriptor, 32 bytes (figure "Identify – Power
// State Descriptor Data Structure"). Scales: see MaxPower and its kin.
type PowerState struct {
	_           structs.HostLayout
	MP          uint16 // maximum power
	_           [1]byte
	Flags       uint8  // bit 0 MXPS, bit 1 NOPS
	ENLAT       uint32 // entry latency, us
	EXLAT       uint32 // exit latency, us
	RRT         uint8  // relative read throughput, 0 best
	RRL         uint8  // relative read latency, 0 best
	RWT         uint8  // relative write throughput, 0 best
	RWL         uint8  // relative write latency, 0 best
	IDLP        uint16 // idle power
	IPS         uint8  // idle power scale in bits 7:6
	_           [1]byte
	ACTP        uint16 // active power
	APWS        uint8  // active power scale in bits 7:6, workload in 2:0
	EPFRT       uint8  // emergency power fail recovery time, 1 to 99
	FQVT        uint8  // forced quiescence vault time, 1 to 99
	EPFVT       uint8  // emergency power fail vault time, 1 to 99
	EPFRTSFQVTS uint8  // time scales: emergency recovery in 3:0, forced quiescence in 7:4
	EPFVTS      uint8  // time scale of the emergency vault time in 3:0
	_           [4]byte
}
