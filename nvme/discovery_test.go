package nvme

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// paged answers Get Log Page for one page from what read returns, piece by
// piece.
func (d *fakeDisk) paged(lid LogID, read func(offset uint64) []byte) {
	d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
		if fq.qp.ID() != 0 || rq.Cmd.Opcode != AdminGetLogPage || LogID(rq.Cmd.CDW10) != lid {
			return 0, true
		}
		off := logOffset(&rq.Cmd)
		page := read(off)
		clear(rq.Data.Buf)
		copy(rq.Data.Buf, page[min(off, uint64(len(page))):])
		fq.cpl.StatusPhase = 0
		fq.qp.Complete(rq, &fq.cpl)
		return 0, false
	}
}

// network is what the transport of these tests leads to.
var network struct {
	sync.Mutex
	services map[string]func() *fakeDisk // by traddr
	visits   []string
}

func init() {
	Register("rdma", func(a Address, cfg *Config) (Transport, error) {
		network.Lock()
		defer network.Unlock()
		network.visits = append(network.visits, a.Traddr)
		if a.HostNQN != "" && cfg.HostNQN != a.HostNQN {
			return nil, errors.New("host NQN of the address was not applied")
		}
		make := network.services[a.Traddr]
		if make == nil {
			return nil, fmt.Errorf("no route to %s", a.Traddr)
		}
		return make(), nil
	})
}

// service makes a discovery controller with the given entries.
func service(entries ...DiscoveryEntry) func() *fakeDisk {
	return func() *fakeDisk {
		d := newFakeDisk(512, 8)
		d.id.CNTRLTYPE, d.id.MDTS = ControllerTypeDiscovery, 1
		d.id.SetSubsystemNQN(DiscoveryNQN)
		b, _ := (&DiscoveryLog{Generation: 7, Entries: entries}).AppendBinary(nil)
		d.paged(LogDiscovery, func(uint64) []byte { return b })
		return d
	}
}

func entry(t *testing.T, kind SubType, traddr, nqn string) DiscoveryEntry {
	t.Helper()
	e := DiscoveryEntry{TRTYPE: TRTypeRDMA, ADRFAM: ADRFamIPv4, SUBTYPE: kind, ControllerID: ControllerIDDynamic}
	if err := errors.Join(e.SetAddress(traddr, "4420"), e.SetSubsystemNQN(nqn)); err != nil {
		t.Fatal(err)
	}
	return e
}

func setNetwork(services map[string]func() *fakeDisk) {
	network.Lock()
	defer network.Unlock()
	network.services, network.visits = services, nil
}

func TestDiscover(t *testing.T) {
	const disk = "nqn.2026-01.io.qpoll:disk"
	var many []DiscoveryEntry
	for i := range 40 { // more than one command brings
		many = append(many, entry(t, SubTypeNVM, fmt.Sprintf("10.0.1.%d", i), fmt.Sprintf("%s%d", disk, i)))
	}
	setNetwork(map[string]func() *fakeDisk{
		"10.0.0.1": service(append(many, entry(t, SubTypeReferral, "10.0.0.2", DiscoveryNQN),
			entry(t, SubTypeReferral, "10.0.0.9", DiscoveryNQN))...), // 10.0.0.9 is not there
		"10.0.0.2": service(entry(t, SubTypeNVM, "10.0.2.1", disk), entry(t, SubTypeReferral, "10.0.0.1", DiscoveryNQN),
			entry(t, SubTypeReferral, "10.0.0.2", DiscoveryNQN)), // in a circle, and itself
	})
	found, err := Discover(context.Background(), "trtype:rdma traddr:10.0.0.1 trsvcid:4420 hostnqn:nqn.2026-01.io.qpoll:host", nil)
	if err == nil || !strings.Contains(err.Error(), "no route to 10.0.0.9") {
		t.Error(err)
	}
	var disks int
	for _, f := range found {
		if f.Entry.SUBTYPE == SubTypeNVM {
			disks++
			if f.Addr.HostNQN != "nqn.2026-01.io.qpoll:host" || f.Addr.Transport != "rdma" {
				t.Errorf("%+v", f.Addr)
			}
		}
	}
	if disks != 41 || len(found) != 45 {
		t.Error(disks, len(found))
	}
	network.Lock()
	defer network.Unlock()
	if !slices.Equal(network.visits, []string{"10.0.0.1", "10.0.0.2", "10.0.0.9"}) {
		t.Error(network.visits)
	}
}

// Referrals without end: each service refers to the next.
func TestDiscoverReferralChain(t *testing.T) {
	services := map[string]func() *fakeDisk{}
	for i := range 100 {
		services[fmt.Sprintf("s%d", i)] = service(entry(t, SubTypeReferral, fmt.Sprintf("s%d", i+1), DiscoveryNQN))
	}
	setNetwork(services)
	found, err := Discover(context.Background(), "trtype:rdma traddr:s0 trsvcid:4420", nil)
	if !errors.Is(err, ErrProtocol) || len(found) != maxReferrals {
		t.Error(len(found), err)
	}
}

// A log that changes while it is read is read again; one that never stands
// still, or claims to be endless, is an error.
func TestDiscoveryLogChanges(t *testing.T) {
	e := []DiscoveryEntry{entry(t, SubTypeNVM, "a", "nqn.x:1"), entry(t, SubTypeNVM, "b", "nqn.x:2")}
	for name, tc := range map[string]struct {
		log  func(reads int) *DiscoveryLog
		want error
	}{
		"still":        {func(int) *DiscoveryLog { return &DiscoveryLog{Generation: 1, Entries: e} }, nil},
		"changes once": {func(n int) *DiscoveryLog { return &DiscoveryLog{Generation: uint64(min(n, 2)), Entries: e[:min(n, 2)]} }, nil},
		"never still":  {func(n int) *DiscoveryLog { return &DiscoveryLog{Generation: uint64(n), Entries: e} }, ErrProtocol},
	} {
		d := service(e...)()
		reads := 0
		d.paged(LogDiscovery, func(off uint64) []byte {
			if off == 0 {
				reads++
			}
			b, _ := tc.log(reads).AppendBinary(nil)
			return b
		})
		c, err := NewController(context.Background(), d, &Config{Poller: startPoller(t)})
		if err != nil {
			t.Fatal(err)
		}
		log, err := c.DiscoveryLog(context.Background())
		if !errors.Is(err, tc.want) || err == nil && len(log.Entries) != 2 {
			t.Errorf("%s: %v, %v", name, log, err)
		}
		c.Close(context.Background())
	}
	d := service()()
	d.paged(LogDiscovery, func(uint64) []byte {
		b := make([]byte, DiscoveryHeaderSize)
		b[8+7] = 0x7f // NUMREC
		return b
	})
	c, err := NewController(context.Background(), d, &Config{Poller: startPoller(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.DiscoveryLog(context.Background()); err == nil {
		t.Error("an endless log was read")
	}
	r := newRig(t, newFakeDisk(512, 8), nil)
	if _, err := r.c.DiscoveryLog(context.Background()); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

// Open finds transports by name, and says which there are.
func TestOpen(t *testing.T) {
	setNetwork(map[string]func() *fakeDisk{"h": func() *fakeDisk { return newFakeDisk(512, 8) }})
	ctx := context.Background()
	c, err := Open(ctx, "trtype:rdma traddr:h nqn:nqn.x:1 nr_io_queues:3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.IOQueues() != 3 {
		t.Error(c.IOQueues())
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	for addr, want := range map[string]string{
		"trtype:warp traddr:h":                    "have: rdma, tcp; import github.com/qpoll/qpoll/warp",
		"trtype:rdma traddr:h nr_io_queues:x":      "nr_io_queues",
		"trtype:rdma traddr:elsewhere nqn:nqn.x:1": "no route",
		"traddr": "not key:value",
	} {
		if _, err := Open(ctx, addr, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
