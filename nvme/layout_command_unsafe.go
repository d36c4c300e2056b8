package nvme

import "unsafe"

var (
	_ [4096]byte = [unsafe.Sizeof(NamespaceCreate{})]byte{}
	_ [8]byte    = [unsafe.Offsetof(NamespaceCreate{}.NCAP)]byte{}
	_ [26]byte   = [unsafe.Offsetof(NamespaceCreate{}.FLBAS)]byte{}
	_ [29]byte   = [unsafe.Offsetof(NamespaceCreate{}.DPS)]byte{}
	_ [30]byte   = [unsafe.Offsetof(NamespaceCreate{}.NMIC)]byte{}
	_ [92]byte   = [unsafe.Offsetof(NamespaceCreate{}.ANAGRPID)]byte{}
	_ [100]byte  = [unsafe.Offsetof(NamespaceCreate{}.NVMSETID)]byte{}
	_ [102]byte  = [unsafe.Offsetof(NamespaceCreate{}.ENDGID)]byte{}
	_ [384]byte  = [unsafe.Offsetof(NamespaceCreate{}.LBSTM)]byte{}
	_ [392]byte  = [unsafe.Offsetof(NamespaceCreate{}.NPHNDLS)]byte{}
	_ [512]byte  = [unsafe.Offsetof(NamespaceCreate{}.PHNDL)]byte{}

	_ [32]byte = [unsafe.Sizeof(CopyRange{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(CopyRange{}.SLBA)]byte{}
	_ [16]byte = [unsafe.Offsetof(CopyRange{}.NLB)]byte{}
	_ [18]byte = [unsafe.Offsetof(CopyRange{}.CETYPE)]byte{}
	_ [20]byte = [unsafe.Offsetof(CopyRange{}.CEV)]byte{}
	_ [22]byte = [unsafe.Offsetof(CopyRange{}.SOPT)]byte{}
	_ [24]byte = [unsafe.Offsetof(CopyRange{}.ELBT)]byte{}
	_ [28]byte = [unsafe.Offsetof(CopyRange{}.ELBAT)]byte{}
	_ [30]byte = [unsafe.Offsetof(CopyRange{}.ELBATM)]byte{}

	_ [40]byte = [unsafe.Sizeof(CopyRangeLong{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(CopyRangeLong{}.SLBA)]byte{}
	_ [16]byte = [unsafe.Offsetof(CopyRangeLong{}.NLB)]byte{}
	_ [18]byte = [unsafe.Offsetof(CopyRangeLong{}.CETYPE)]byte{}
	_ [20]byte = [unsafe.Offsetof(CopyRangeLong{}.CEV)]byte{}
	_ [22]byte = [unsafe.Offsetof(CopyRangeLong{}.SOPT)]byte{}
	_ [26]byte = [unsafe.Offsetof(CopyRangeLong{}.ELBT)]byte{}
	_ [36]byte = [unsafe.Offsetof(CopyRangeLong{}.ELBAT)]byte{}
	_ [38]byte = [unsafe.Offsetof(CopyRangeLong{}.ELBATM)]byte{}

	_ [16]byte = [unsafe.Sizeof(ReservationKeys{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(ReservationKeys{}.Other)]byte{}

	_ [32]byte = [unsafe.Sizeof(HandleStatus{})]byte{}
	_ [2]byte  = [unsafe.Offsetof(HandleStatus{}.RUHID)]byte{}
	_ [4]byte  = [unsafe.Offsetof(HandleStatus{}.EARUTR)]byte{}
	_ [8]byte  = [unsafe.Offsetof(HandleStatus{}.RUAMW)]byte{}

	_ [256]byte = [unsafe.Sizeof(PowerStateTransitions{})]byte{}

	_ [512]byte = [unsafe.Sizeof(HostBehavior{})]byte{}
	_ [1]byte   = [unsafe.Offsetof(HostBehavior{}.ETDAS)]byte{}
	_ [2]byte   = [unsafe.Offsetof(HostBehavior{}.LBAFEE)]byte{}
	_ [3]byte   = [unsafe.Offsetof(HostBehavior{}.HDISNS)]byte{}
	_ [4]byte   = [unsafe.Offsetof(HostBehavior{}.CDFE)]byte{}

	_ [512]byte = [unsafe.Sizeof(PredictableLatencyConfig{})]byte{}
	_ [32]byte  = [unsafe.Offsetof(PredictableLatencyConfig{}.ReadsThreshold)]byte{}
	_ [40]byte  = [unsafe.Offsetof(PredictableLatencyConfig{}.WritesThreshold)]byte{}
	_ [48]byte  = [unsafe.Offsetof(PredictableLatencyConfig{}.TimeThreshold)]byte{}

	_ [16]byte = [unsafe.Sizeof(HostMemoryDescriptor{})]byte{}
	_ [8]byte  = [unsafe.Offsetof(HostMemoryDescriptor{}.BSIZE)]byte{}

	_ [4096]byte = [unsafe.Sizeof(HostMemoryBufferAttributes{})]byte{}
	_ [4]byte    = [unsafe.Offsetof(HostMemoryBufferAttributes{}.HMDLAL)]byte{}
	_ [8]byte    = [unsafe.Offsetof(HostMemoryBufferAttributes{}.HMDLAU)]byte{}
	_ [12]byte   = [unsafe.Offsetof(HostMemoryBufferAttributes{}.HMDLEC)]byte{}

	_ [64]byte = [unsafe.Sizeof(LBARangeType{})]byte{}
	_ [1]byte  = [unsafe.Offsetof(LBARangeType{}.Attributes)]byte{}
	_ [16]byte = [unsafe.Offsetof(LBARangeType{}.SLBA)]byte{}
	_ [24]byte = [unsafe.Offsetof(LBARangeType{}.NLB)]byte{}
	_ [32]byte = [unsafe.Offsetof(LBARangeType{}.GUID)]byte{}
)
