package nvme

// Offsets of the controller properties, which memory-based transports call
// registers (Base Specification 3.1.4, figure "Property Definition").
const (
	RegCAP     = 0x0000 // controller capabilities, 64 bits
	RegVS      = 0x0008 // version
	RegINTMS   = 0x000c // interrupt mask set
	RegINTMC   = 0x0010 // interrupt mask clear
	RegCC      = 0x0014 // controller configuration
	RegCSTS    = 0x001c // controller status
	RegNSSR    = 0x0020 // NVM subsystem reset
	RegAQA     = 0x0024 // admin queue attributes
	RegASQ     = 0x0028 // admin submission queue base address, 64 bits
	RegACQ     = 0x0030 // admin completion queue base address, 64 bits
	RegCMBLOC  = 0x0038 // controller memory buffer location
	RegCMBSZ   = 0x003c // controller memory buffer size
	RegBPINFO  = 0x0040 // boot partition information
	RegBPRSEL  = 0x0044 // boot partition read select
	RegBPMBL   = 0x0048 // boot partition memory buffer location, 64 bits
	RegCMBMSC  = 0x0050 // controller memory buffer memory space control, 64 bits
	RegCMBSTS  = 0x0058 // controller memory buffer status
	RegCMBEBS  = 0x005c // controller memory buffer elasticity buffer size
	RegCMBSWTP = 0x0060 // controller memory buffer sustained write throughput
	RegNSSD    = 0x0064 // NVM subsystem shutdown
	RegCRTO    = 0x0068 // controller ready timeouts

	RegPMRCAP  = 0x0e00 // persistent memory region capabilities
	RegPMRCTL  = 0x0e04 // persistent memory region control
	RegPMRSTS  = 0x0e08 // persistent memory region status
	RegPMREBS  = 0x0e0c // persistent memory region elasticity buffer size
	RegPMRSWTP = 0x0e10 // persistent memory region sustained write throughput
	RegPMRMSCL = 0x0e14 // persistent memory region memory space control, lower
	RegPMRMSCU = 0x0e18 // persistent memory region memory space control, upper

	// RegDoorbells is where the doorbells of a memory-based controller start:
	// that of submission queue y is DoorbellStride*2y bytes further on, that
	// of completion queue y DoorbellStride*(2y+1).
	RegDoorbells = 0x1000
)

// Values to write to RegNSSR and RegNSSD; any other value has no effect.
const (
	NSSRReset          uint32 = 0x4e564d65 // "NVMe": NVM subsystem reset
	NSSDNormalShutdown uint32 = 0x4e726d6c // "Nrml": normal NVM subsystem shutdown
	NSSDAbruptShutdown uint32 = 0x41627074 // "Abpt": abrupt NVM subsystem shutdown
)

// PropertySize returns the size in bytes, 4 or 8, of the property at offset,
// and 0 when no property starts there.
func PropertySize(offset uint32) int {
	switch offset {
	case RegCAP, RegASQ, RegACQ, RegBPMBL, RegCMBMSC:
		return 8
	case RegVS, RegINTMS, RegINTMC, RegCC, RegCSTS, RegNSSR, RegAQA, RegCMBLOC, RegCMBSZ,
		RegBPINFO, RegBPRSEL, RegCMBSTS, RegCMBEBS, RegCMBSWTP, RegNSSD, RegCRTO,
		RegPMRCAP, RegPMRCTL, RegPMRSTS, RegPMREBS, RegPMRSWTP, RegPMRMSCL, RegPMRMSCU:
		return 4
	}
	return 0
}
