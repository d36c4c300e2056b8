package nvme

import "unsafe"

var (
	_ [64]byte = [unsafe.Sizeof(ErrorLogEntry{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(ErrorLogEntry{}.SQID)]byte{}
	_ [10]byte = [unsafe.Offsetof(ErrorLogEntry{}.CID)]byte{}
	_ [12]byte = [unsafe.Offsetof(ErrorLogEntry{}.StatusPhase)]byte{}
	_ [14]byte = [unsafe.Offsetof(ErrorLogEntry{}.PEL)]byte{}
	_ [16]byte = [unsafe.Offsetof(ErrorLogEntry{}.LBA)]byte{}
	_ [24]byte = [unsafe.Offsetof(ErrorLogEntry{}.NSID)]byte{}
	_ [28]byte = [unsafe.Offsetof(ErrorLogEntry{}.VSIA)]byte{}
	_ [29]byte = [unsafe.Offsetof(ErrorLogEntry{}.TRTYPE)]byte{}
	_ [30]byte = [unsafe.Offsetof(ErrorLogEntry{}.CSI)]byte{}
	_ [31]byte = [unsafe.Offsetof(ErrorLogEntry{}.OPC)]byte{}
	_ [32]byte = [unsafe.Offsetof(ErrorLogEntry{}.CSINFO)]byte{}
	_ [40]byte = [unsafe.Offsetof(ErrorLogEntry{}.TTSI)]byte{}
	_ [63]byte = [unsafe.Offsetof(ErrorLogEntry{}.LPVER)]byte{}

	_ [512]byte = [unsafe.Sizeof(SMARTLog{})]byte{}
	_ [1]byte   = [unsafe.Offsetof(SMARTLog{}.CTEMP)]byte{}
	_ [3]byte   = [unsafe.Offsetof(SMARTLog{}.AvailableSpare)]byte{}
	_ [4]byte   = [unsafe.Offsetof(SMARTLog{}.SpareThreshold)]byte{}
	_ [5]byte   = [unsafe.Offsetof(SMARTLog{}.PercentageUsed)]byte{}
	_ [6]byte   = [unsafe.Offsetof(SMARTLog{}.EnduranceWarning)]byte{}
	_ [32]byte  = [unsafe.Offsetof(SMARTLog{}.DataUnitsRead)]byte{}
	_ [48]byte  = [unsafe.Offsetof(SMARTLog{}.DataUnitsWritten)]byte{}
	_ [64]byte  = [unsafe.Offsetof(SMARTLog{}.HostReads)]byte{}
	_ [80]byte  = [unsafe.Offsetof(SMARTLog{}.HostWrites)]byte{}
	_ [96]byte  = [unsafe.Offsetof(SMARTLog{}.BusyTime)]byte{}
	_ [112]byte = [unsafe.Offsetof(SMARTLog{}.PowerCycles)]byte{}
	_ [128]byte = [unsafe.Offsetof(SMARTLog{}.PowerOnHours)]byte{}
	_ [144]byte = [unsafe.Offsetof(SMARTLog{}.UnsafeShutdowns)]byte{}
	_ [160]byte = [unsafe.Offsetof(SMARTLog{}.MediaErrors)]byte{}
	_ [176]byte = [unsafe.Offsetof(SMARTLog{}.ErrorLogEntries)]byte{}
	_ [192]byte = [unsafe.Offsetof(SMARTLog{}.WarningTempTime)]byte{}
	_ [196]byte = [unsafe.Offsetof(SMARTLog{}.CriticalTempTime)]byte{}
	_ [200]byte = [unsafe.Offsetof(SMARTLog{}.TemperatureSensors)]byte{}
	_ [216]byte = [unsafe.Offsetof(SMARTLog{}.ThermalTransitions)]byte{}
	_ [224]byte = [unsafe.Offsetof(SMARTLog{}.ThermalTime)]byte{}

	_ [512]byte = [unsafe.Sizeof(FirmwareSlotLog{})]byte{}
	_ [8]byte   = [unsafe.Offsetof(FirmwareSlotLog{}.FRS)]byte{}

	_ [4096]byte = [unsafe.Sizeof(CommandEffectsLog{})]byte{}
	_ [1024]byte = [unsafe.Offsetof(CommandEffectsLog{}.IO)]byte{}

	_ [1024]byte = [unsafe.Sizeof(FeatureEffectsLog{})]byte{}

	_ [4096]byte = [unsafe.Sizeof(MIEffectsLog{})]byte{}

	_ [1024]byte = [unsafe.Sizeof(SupportedLogPages{})]byte{}

	_ [564]byte = [unsafe.Sizeof(SelfTestLog{})]byte{}
	_ [1]byte   = [unsafe.Offsetof(SelfTestLog{}.Completion)]byte{}
	_ [4]byte   = [unsafe.Offsetof(SelfTestLog{}.Results)]byte{}

	_ [28]byte = [unsafe.Sizeof(SelfTestResult{})]byte{}
	_ [1]byte  = [unsafe.Offsetof(SelfTestResult{}.Segment)]byte{}
	_ [2]byte  = [unsafe.Offsetof(SelfTestResult{}.VDINFO)]byte{}
	_ [4]byte  = [unsafe.Offsetof(SelfTestResult{}.POH)]byte{}
	_ [12]byte = [unsafe.Offsetof(SelfTestResult{}.NSID)]byte{}
	_ [16]byte = [unsafe.Offsetof(SelfTestResult{}.FLBA)]byte{}
	_ [24]byte = [unsafe.Offsetof(SelfTestResult{}.STCT)]byte{}
	_ [25]byte = [unsafe.Offsetof(SelfTestResult{}.STC)]byte{}
	_ [26]byte = [unsafe.Offsetof(SelfTestResult{}.VendorBytes)]byte{}

	_ [512]byte = [unsafe.Sizeof(TelemetryHeader{})]byte{}
	_ [5]byte   = [unsafe.Offsetof(TelemetryHeader{}.IEEE)]byte{}
	_ [8]byte   = [unsafe.Offsetof(TelemetryHeader{}.DataArea1Last)]byte{}
	_ [10]byte  = [unsafe.Offsetof(TelemetryHeader{}.DataArea2Last)]byte{}
	_ [12]byte  = [unsafe.Offsetof(TelemetryHeader{}.DataArea3Last)]byte{}
	_ [16]byte  = [unsafe.Offsetof(TelemetryHeader{}.DataArea4Last)]byte{}
	_ [380]byte = [unsafe.Offsetof(TelemetryHeader{}.HostScope)]byte{}
	_ [381]byte = [unsafe.Offsetof(TelemetryHeader{}.HostGeneration)]byte{}
	_ [382]byte = [unsafe.Offsetof(TelemetryHeader{}.ControllerAvailable)]byte{}
	_ [383]byte = [unsafe.Offsetof(TelemetryHeader{}.ControllerGeneration)]byte{}
	_ [384]byte = [unsafe.Offsetof(TelemetryHeader{}.ReasonID)]byte{}

	_ [512]byte = [unsafe.Sizeof(EnduranceGroupLog{})]byte{}
	_ [1]byte   = [unsafe.Offsetof(EnduranceGroupLog{}.Features)]byte{}
	_ [3]byte   = [unsafe.Offsetof(EnduranceGroupLog{}.AvailableSpare)]byte{}
	_ [4]byte   = [unsafe.Offsetof(EnduranceGroupLog{}.SpareThreshold)]byte{}
	_ [5]byte   = [unsafe.Offsetof(EnduranceGroupLog{}.PercentageUsed)]byte{}
	_ [6]byte   = [unsafe.Offsetof(EnduranceGroupLog{}.DID)]byte{}
	_ [32]byte  = [unsafe.Offsetof(EnduranceGroupLog{}.EnduranceEstimate)]byte{}
	_ [48]byte  = [unsafe.Offsetof(EnduranceGroupLog{}.DataUnitsRead)]byte{}
	_ [64]byte  = [unsafe.Offsetof(EnduranceGroupLog{}.DataUnitsWritten)]byte{}
	_ [80]byte  = [unsafe.Offsetof(EnduranceGroupLog{}.MediaUnitsWritten)]byte{}
	_ [96]byte  = [unsafe.Offsetof(EnduranceGroupLog{}.HostReads)]byte{}
	_ [112]byte = [unsafe.Offsetof(EnduranceGroupLog{}.HostWrites)]byte{}
	_ [128]byte = [unsafe.Offsetof(EnduranceGroupLog{}.MediaErrors)]byte{}
	_ [144]byte = [unsafe.Offsetof(EnduranceGroupLog{}.ErrorLogEntries)]byte{}
	_ [160]byte = [unsafe.Offsetof(EnduranceGroupLog{}.TotalCapacity)]byte{}
	_ [176]byte = [unsafe.Offsetof(EnduranceGroupLog{}.UnallocCapacity)]byte{}

	_ [512]byte = [unsafe.Sizeof(PredictableLatencyLog{})]byte{}
	_ [2]byte   = [unsafe.Offsetof(PredictableLatencyLog{}.Events)]byte{}
	_ [32]byte  = [unsafe.Offsetof(PredictableLatencyLog{}.ReadsTypical)]byte{}
	_ [40]byte  = [unsafe.Offsetof(PredictableLatencyLog{}.WritesTypical)]byte{}
	_ [48]byte  = [unsafe.Offsetof(PredictableLatencyLog{}.TimeMaximum)]byte{}
	_ [56]byte  = [unsafe.Offsetof(PredictableLatencyLog{}.NDWINTimeMinHigh)]byte{}
	_ [64]byte  = [unsafe.Offsetof(PredictableLatencyLog{}.NDWINTimeMinLow)]byte{}
	_ [128]byte = [unsafe.Offsetof(PredictableLatencyLog{}.ReadsEstimate)]byte{}
	_ [136]byte = [unsafe.Offsetof(PredictableLatencyLog{}.WritesEstimate)]byte{}
	_ [144]byte = [unsafe.Offsetof(PredictableLatencyLog{}.TimeEstimate)]byte{}

	_ [512]byte = [unsafe.Sizeof(PersistentEventHeader{})]byte{}
	_ [4]byte   = [unsafe.Offsetof(PersistentEventHeader{}.TNEV)]byte{}
	_ [8]byte   = [unsafe.Offsetof(PersistentEventHeader{}.TLL)]byte{}
	_ [16]byte  = [unsafe.Offsetof(PersistentEventHeader{}.LREV)]byte{}
	_ [18]byte  = [unsafe.Offsetof(PersistentEventHeader{}.LHL)]byte{}
	_ [20]byte  = [unsafe.Offsetof(PersistentEventHeader{}.Timestamp)]byte{}
	_ [28]byte  = [unsafe.Offsetof(PersistentEventHeader{}.POH)]byte{}
	_ [44]byte  = [unsafe.Offsetof(PersistentEventHeader{}.PWRCC)]byte{}
	_ [52]byte  = [unsafe.Offsetof(PersistentEventHeader{}.VID)]byte{}
	_ [54]byte  = [unsafe.Offsetof(PersistentEventHeader{}.SSVID)]byte{}
	_ [56]byte  = [unsafe.Offsetof(PersistentEventHeader{}.SN)]byte{}
	_ [76]byte  = [unsafe.Offsetof(PersistentEventHeader{}.MN)]byte{}
	_ [116]byte = [unsafe.Offsetof(PersistentEventHeader{}.SUBNQN)]byte{}
	_ [372]byte = [unsafe.Offsetof(PersistentEventHeader{}.GNUM)]byte{}
	_ [374]byte = [unsafe.Offsetof(PersistentEventHeader{}.RCI)]byte{}
	_ [480]byte = [unsafe.Offsetof(PersistentEventHeader{}.SEB)]byte{}

	_ [512]byte = [unsafe.Sizeof(LockdownLog{})]byte{}
	_ [3]byte   = [unsafe.Offsetof(LockdownLog{}.Length)]byte{}
	_ [4]byte   = [unsafe.Offsetof(LockdownLog{}.CFIL)]byte{}

	_ [16]byte = [unsafe.Sizeof(BootPartitionHeader{})]byte{}
	_ [4]byte  = [unsafe.Offsetof(BootPartitionHeader{}.BPINFO)]byte{}

	_ [512]byte = [unsafe.Sizeof(RotationalMediaLog{})]byte{}
	_ [2]byte   = [unsafe.Offsetof(RotationalMediaLog{}.NUMA)]byte{}
	_ [4]byte   = [unsafe.Offsetof(RotationalMediaLog{}.NRS)]byte{}
	_ [8]byte   = [unsafe.Offsetof(RotationalMediaLog{}.SPINC)]byte{}
	_ [12]byte  = [unsafe.Offsetof(RotationalMediaLog{}.FSPINC)]byte{}
	_ [16]byte  = [unsafe.Offsetof(RotationalMediaLog{}.LDC)]byte{}
	_ [20]byte  = [unsafe.Offsetof(RotationalMediaLog{}.FLDC)]byte{}

	_ [4096]byte = [unsafe.Sizeof(ManagementAddressLog{})]byte{}

	_ [512]byte = [unsafe.Sizeof(ManagementAddress{})]byte{}
	_ [4]byte   = [unsafe.Offsetof(ManagementAddress{}.MADRS)]byte{}

	_ [64]byte = [unsafe.Sizeof(FDPStatisticsLog{})]byte{}
	_ [16]byte = [unsafe.Offsetof(FDPStatisticsLog{}.MBMW)]byte{}
	_ [32]byte = [unsafe.Offsetof(FDPStatisticsLog{}.MBE)]byte{}

	_ [64]byte = [unsafe.Sizeof(FDPEvent{})]byte{}
	_ [1]byte  = [unsafe.Offsetof(FDPEvent{}.Flags)]byte{}
	_ [2]byte  = [unsafe.Offsetof(FDPEvent{}.PID)]byte{}
	_ [4]byte  = [unsafe.Offsetof(FDPEvent{}.Timestamp)]byte{}
	_ [12]byte = [unsafe.Offsetof(FDPEvent{}.NSID)]byte{}
	_ [16]byte = [unsafe.Offsetof(FDPEvent{}.Specific)]byte{}
	_ [32]byte = [unsafe.Offsetof(FDPEvent{}.RGID)]byte{}
	_ [34]byte = [unsafe.Offsetof(FDPEvent{}.RUHID)]byte{}
	_ [40]byte = [unsafe.Offsetof(FDPEvent{}.VendorBytes)]byte{}

	_ [1024]byte = [unsafe.Sizeof(DiscoveryHeader{})]byte{}
	_ [8]byte    = [unsafe.Offsetof(DiscoveryHeader{}.NUMREC)]byte{}
	_ [16]byte   = [unsafe.Offsetof(DiscoveryHeader{}.RECFMT)]byte{}
	_ [18]byte   = [unsafe.Offsetof(DiscoveryHeader{}.DLPF)]byte{}
	_ [20]byte   = [unsafe.Offsetof(DiscoveryHeader{}.TDLPL)]byte{}

	_ [1024]byte = [unsafe.Sizeof(DiscoveryEntry{})]byte{}
	_ [1]byte    = [unsafe.Offsetof(DiscoveryEntry{}.ADRFAM)]byte{}
	_ [2]byte    = [unsafe.Offsetof(DiscoveryEntry{}.SUBTYPE)]byte{}
	_ [3]byte    = [unsafe.Offsetof(DiscoveryEntry{}.TREQ)]byte{}
	_ [4]byte    = [unsafe.Offsetof(DiscoveryEntry{}.PORTID)]byte{}
	_ [6]byte    = [unsafe.Offsetof(DiscoveryEntry{}.ControllerID)]byte{}
	_ [8]byte    = [unsafe.Offsetof(DiscoveryEntry{}.ASQSZ)]byte{}
	_ [10]byte   = [unsafe.Offsetof(DiscoveryEntry{}.EFLAGS)]byte{}
	_ [32]byte   = [unsafe.Offsetof(DiscoveryEntry{}.TRSVCID)]byte{}
	_ [256]byte  = [unsafe.Offsetof(DiscoveryEntry{}.SUBNQN)]byte{}
	_ [512]byte  = [unsafe.Offsetof(DiscoveryEntry{}.TRADDR)]byte{}
	_ [768]byte  = [unsafe.Offsetof(DiscoveryEntry{}.TSAS)]byte{}

	_ [64]byte = [unsafe.Sizeof(ReservationLog{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(ReservationLog{}.RNLPT)]byte{}
	_ [9]byte  = [unsafe.Offsetof(ReservationLog{}.NALP)]byte{}
	_ [12]byte = [unsafe.Offsetof(ReservationLog{}.NSID)]byte{}

	_ [512]byte = [unsafe.Sizeof(SanitizeLog{})]byte{}
	_ [2]byte   = [unsafe.Offsetof(SanitizeLog{}.SSTAT)]byte{}
	_ [4]byte   = [unsafe.Offsetof(SanitizeLog{}.SCDW10)]byte{}
	_ [8]byte   = [unsafe.Offsetof(SanitizeLog{}.ETO)]byte{}
	_ [12]byte  = [unsafe.Offsetof(SanitizeLog{}.ETBE)]byte{}
	_ [16]byte  = [unsafe.Offsetof(SanitizeLog{}.ETCE)]byte{}
	_ [20]byte  = [unsafe.Offsetof(SanitizeLog{}.ETODMM)]byte{}
	_ [24]byte  = [unsafe.Offsetof(SanitizeLog{}.ETBENMM)]byte{}
	_ [28]byte  = [unsafe.Offsetof(SanitizeLog{}.ETCENMM)]byte{}
	_ [32]byte  = [unsafe.Offsetof(SanitizeLog{}.ETPVDS)]byte{}
	_ [36]byte  = [unsafe.Offsetof(SanitizeLog{}.SSI)]byte{}
)
