package nvme

import (
	"errors"
	"reflect"
	"testing"
)

// codec is one structure or list under test. A nil encode leaves the way back
// out.
type codec struct {
	name   string
	parse  func([]byte) (any, error)
	encode func(any) ([]byte, error)
}

// fixed returns the codec of a type with UnmarshalBinary and AppendBinary.
func fixed[T any, P interface {
	*T
	structure
}]() codec {
	return codec{
		name: reflect.TypeFor[T]().Name(),
		parse: func(b []byte) (any, error) {
			v := P(new(T))
			return v, v.UnmarshalBinary(b)
		},
		encode: func(v any) ([]byte, error) { return v.(P).AppendBinary(nil) },
	}
}

// list returns the codec of a list with functions to parse and to append it.
func list[T any](name string, parse func([]byte) (T, error), add func([]byte, T) ([]byte, error)) codec {
	return codec{
		name:   name,
		parse:  func(b []byte) (any, error) { return parse(b) },
		encode: func(v any) ([]byte, error) { return add(nil, v.(T)) },
	}
}

// check parses b. Either it is refused with a DecodeError, or what comes out
// can be encoded and parsed again into the same, and every accessor returns.
func (c codec) check(t *testing.T, b []byte) {
	t.Helper()
	v, err := c.parse(b)
	if err != nil {
		var d *DecodeError
		if !errors.As(err, &d) {
			t.Fatalf("%s: error %v is not a DecodeError", c.name, err)
		}
		return
	}
	callAccessors(v)
	if c.encode == nil {
		return
	}
	again, err := c.encode(v)
	if err != nil {
		t.Fatalf("%s: what was parsed does not encode: %v", c.name, err)
	}
	w, err := c.parse(again)
	if err != nil {
		t.Fatalf("%s: what was encoded does not parse: %v", c.name, err)
	}
	if !reflect.DeepEqual(v, w) {
		t.Fatalf("%s:\n%+v comes back as\n%+v", c.name, v, w)
	}
}

// callAccessors calls all methods of v that take nothing.
func callAccessors(v any) {
	r := reflect.ValueOf(v)
	for i := range r.NumMethod() {
		if m := r.Method(i); m.Type().NumIn() == 0 {
			m.Call(nil)
		}
	}
}

func fuzzCodec(f *testing.F, c codec, size int) {
	f.Helper()
	f.Add(make([]byte, size))
	f.Add([]byte{})
	ones := make([]byte, size)
	for i := range ones {
		ones[i] = 0xff
	}
	f.Add(ones)
	f.Fuzz(func(t *testing.T, b []byte) { c.check(t, b) })
}

func FuzzIdentifyController(f *testing.F) {
	fuzzCodec(f, fixed[IdentifyController](), IdentifyDataSize)
}

func FuzzIdentifyNamespace(f *testing.F) {
	fuzzCodec(f, fixed[IdentifyNamespace](), IdentifyDataSize)
}

func FuzzConnectData(f *testing.F) {
	fuzzCodec(f, fixed[ConnectData](), 1024)
}

func FuzzNSDescriptors(f *testing.F) {
	f.Add(hexBytes(f, "01 08 0000 0102030405060708 03 10 0000 000102030405060708090a0b0c0d0e0f 04 01 0000 02"))
	fuzzCodec(f, fixed[NamespaceIdentity](), IdentifyDataSize)
}

// structures are the data structures of fixed size that have no target of
// their own.
var structures = []codec{
	fixed[IdentifyNamespaceIndependent](), fixed[IdentifyNamespaceNVM](), fixed[IdentifyControllerNVM](),
	fixed[NVMSetList](), fixed[DomainList](), fixed[NamespaceGranularityList](), fixed[UUIDList](),
	fixed[PrimaryControllerCapabilities](), fixed[SecondaryControllerList](), fixed[NamespaceCreate](),
	fixed[ErrorLogEntry](), fixed[SMARTLog](), fixed[FirmwareSlotLog](), fixed[CommandEffectsLog](), fixed[FeatureEffectsLog](),
	fixed[MIEffectsLog](), fixed[SupportedLogPages](), fixed[SelfTestLog](), fixed[TelemetryHeader](), fixed[EnduranceGroupLog](),
	fixed[PredictableLatencyLog](), fixed[PersistentEventHeader](), fixed[LockdownLog](), fixed[BootPartitionHeader](),
	fixed[RotationalMediaLog](), fixed[ManagementAddressLog](), fixed[FDPStatisticsLog](), fixed[FDPEvent](),
	fixed[DiscoveryHeader](), fixed[DiscoveryEntry](), fixed[ReservationLog](), fixed[SanitizeLog](),
	fixed[CopyRange](), fixed[CopyRangeLong](), fixed[ReservationKeys](), fixed[HandleStatus](),
	fixed[PowerStateTransitions](), fixed[HostBehavior](), fixed[PredictableLatencyConfig](), fixed[HostMemoryDescriptor](),
	fixed[HostMemoryBufferAttributes](), fixed[LBARangeType](),
}

func FuzzStructures(f *testing.F) {
	for i := range structures {
		f.Add(uint8(i), make([]byte, 4096))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		structures[int(which)%len(structures)].check(t, b)
	})
}

// lists are the lists that Identify and the I/O commands transfer.
var lists = []codec{
	list("namespace list", func(b []byte) ([]uint32, error) { return ParseNamespaceList(b, 0) }, AppendNamespaceList),
	list("identifier list", ParseIdentifierList, AppendIdentifierList),
	list("I/O command sets", ParseIOCommandSets, AppendIOCommandSets),
	list("copy ranges", func(b []byte) ([]CopyRange, error) { return ParseCopyRanges(b, len(b)/32) }, AppendCopyRanges),
	list("handle status", ParseHandleStatus, AppendHandleStatus),
	list("dataset management ranges",
		func(b []byte) ([]DSMRange, error) { return ParseDSMRanges(b, len(b)/16) },
		func(b []byte, r []DSMRange) ([]byte, error) { return AppendDSMRanges(b, r), nil }),
	list("LBA status",
		func(b []byte) ([]LBAStatus, error) { l, _, err := ParseLBAStatus(b); return l, err },
		func(b []byte, l []LBAStatus) ([]byte, error) { return AppendLBAStatus(b, l, LBAStatusComplete) }),
	list("placement identifiers",
		func(b []byte) ([]uint16, error) { return ParsePlacementIDs(b, len(b)/2) },
		func(b []byte, ids []uint16) ([]byte, error) { return AppendPlacementIDs(b, ids), nil }),
	reservationStatus("reservation status", false), reservationStatus("extended reservation status", true),
}

func reservationStatus(name string, extended bool) codec {
	return list(name,
		func(b []byte) (*ReservationStatus, error) {
			s, err := ParseReservationStatus(b, extended)
			if err == nil {
				s.Count = len(s.Registrants) // the one thing that a cut loses
			}
			return s, err
		},
		func(b []byte, s *ReservationStatus) ([]byte, error) { return s.Append(b, extended) })
}

func FuzzLists(f *testing.F) {
	for i := range lists {
		f.Add(uint8(i), make([]byte, 4096))
		f.Add(uint8(i), []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		lists[int(which)%len(lists)].check(t, b)
	})
}
