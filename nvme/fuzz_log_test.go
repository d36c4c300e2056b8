package nvme

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzANALog reads the page at once and in pieces of some size, which has to
// come to the same.
func FuzzANALog(f *testing.F) {
	log := &ANALog{ChangeCount: 1, Groups: []ANAGroup{{ID: 1, State: ANAOptimized, NSIDs: []uint32{1, 2}}, {ID: 2, State: ANAChange}}}
	b, err := log.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, uint8(7))
	f.Add(make([]byte, 16), uint8(1))
	f.Add(bytes.Repeat([]byte{0xff}, 64), uint8(16))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		fixed[ANALog]().check(t, b)
		var whole ANALog
		wholeErr := whole.UnmarshalBinary(b)
		d := NewANADecoder(0, 0)
		for rest := b; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			if _, err := d.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
		pieces, err := d.Log()
		if (err == nil) != (wholeErr == nil) || err == nil && !reflect.DeepEqual(pieces, &whole) {
			t.Fatalf("at once %+v, %v; in pieces %+v, %v", whole, wholeErr, pieces, err)
		}
	})
}

func FuzzDiscoveryLog(f *testing.F) {
	log := DiscoveryLog{Generation: 1, Entries: make([]DiscoveryEntry, 2)}
	b, err := log.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	b = bytes.Clone(b)
	copy(b[8:], "\xff\xff\xff\xff\xff\xff\xff\xff") // number of records
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		fixed[DiscoveryLog]().check(t, b)
		var h DiscoveryHeader
		if h.UnmarshalBinary(b) == nil {
			const records = 1000
			if size, err := h.Size(records); err == nil && size > DiscoveryHeaderSize+records*DiscoveryEntrySize {
				t.Fatalf("%d bytes, above the limit", size)
			}
		}
	})
}

type dispersed struct {
	generation uint64
	nqns       []string
}

type pullRequest struct {
	operation  uint8
	parameters []byte
}

type persistentEvents struct {
	header *PersistentEventHeader
	events []PersistentEvent
}

// logs are the log pages of variable size that have no target of their own.
var logs = []codec{
	fixed[HostDiscoveryLog](), fixed[AVEDiscoveryLog](), fixed[MediaUnitStatusLog](), fixed[ReachabilityLog](),
	list("LBA status log",
		func(b []byte) (*LBAStatusLog, error) {
			l := new(LBAStatusLog)
			err := l.UnmarshalBinary(b)
			l.Length = 0 // the encoder counts it
			return l, err
		},
		func(b []byte, l *LBAStatusLog) ([]byte, error) { return l.AppendBinary(b) }),
	list("capacity configurations", ParseCapacityConfigurations, AppendCapacityConfigurations),
	list("FDP configurations", ParseFDPConfigurations, AppendFDPConfigurations),
	list("FDP handle usage", ParseFDPHandleUsage, AppendFDPHandleUsage),
	list("FDP events", ParseFDPEvents, AppendFDPEvents),
	list("event aggregate", ParseEventAggregate,
		func(b []byte, ids []uint16) ([]byte, error) { return AppendEventAggregate(b, ids), nil }),
	{name: "error log", parse: func(b []byte) (any, error) { return ParseErrorLog(b) }},
	{name: "changed namespaces", parse: func(b []byte) (any, error) { ids, _, err := ParseChangedNamespaces(b); return ids, err }},
	list("dispersed namespace",
		func(b []byte) (dispersed, error) {
			g, n, err := ParseDispersedNamespace(b)
			return dispersed{g, n}, err
		},
		func(b []byte, d dispersed) ([]byte, error) { return AppendDispersedNamespace(b, d.generation, d.nqns) }),
	list("pull model request",
		func(b []byte) (pullRequest, error) {
			o, p, err := ParsePullModelRequest(b)
			return pullRequest{o, p}, err
		},
		func(b []byte, p pullRequest) ([]byte, error) {
			return AppendPullModelRequest(b, p.operation, p.parameters), nil
		}),
	list("persistent events",
		func(b []byte) (persistentEvents, error) {
			h, e, err := ParsePersistentEvents(b)
			return persistentEvents{h, e}, err
		},
		func(b []byte, p persistentEvents) ([]byte, error) {
			header := *p.header
			header.LHL = 512 - 20 // what was between the header and the events is not kept
			b, err := header.AppendBinary(b)
			for i := 0; err == nil && i < len(p.events); i++ {
				b, err = p.events[i].AppendBinary(b)
			}
			p.header.LHL = header.LHL
			return b, err
		}),
}

func FuzzLogPages(f *testing.F) {
	for i := range logs {
		f.Add(uint8(i), make([]byte, 4096))
		f.Add(uint8(i), bytes.Repeat([]byte{0xff}, 600))
		f.Add(uint8(i), append([]byte{0x0d, 0, 0, 0, 1, 0, 0, 0, 0, 4}, bytes.Repeat([]byte{1}, 1200)...))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		logs[int(which)%len(logs)].check(t, b)
	})
}
