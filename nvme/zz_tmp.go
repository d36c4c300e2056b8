package nvme

type DSMRange struct {
	Attributes, Length uint32
	LBA                uint64
}
type AsyncEvent uint32

func (AsyncEvent) Type() uint8    { return 0 }
func (AsyncEvent) Info() uint8    { return 0 }
func (AsyncEvent) LogPage() LogID { return 0 }
func (AsyncEvent) String() string { return "" }

type ANALog struct{ ChangeCount uint64 }

func (*ANALog) UnmarshalBinary([]byte) error { return nil }

type FeatureID uint8
type LogID uint8

const (
	FeatNumberOfQueues                                                         FeatureID = 7
	FeatKeepAliveTimer                                                         FeatureID = 0xf
	FeatAsyncEventConfiguration                                                FeatureID = 0xb
	AsyncNotice                                                                          = 2
	AsyncError, AsyncSMART                                                               = 0, 1
	NoticeNamespaceAttributeChanged, NoticeANAChange, NoticeDiscoveryLogChange           = 0, 3, 0xf0
	LogError, LogChangedNamespaces, LogANA, LogDiscovery                       LogID     = 1, 4, 0xc, 0x70
	anaHeaderSize, anaGroupSize                                                          = 16, 32
	asyncWanted                                                                          = 0x80000900
)

func GetLogPage(lid LogID, nsid uint32, n int, off uint64) Command { return Command{} }
