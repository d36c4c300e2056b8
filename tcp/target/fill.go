package target

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// Defaults and bounds of configurations.
const (
	defaultInCapsule   = 16 << 10
	maxInCapsule       = 1 << 20
	defaultMaxH2CData  = 1 << 20
	maxMaxH2CData      = 16 << 20
	maxMaxR2T          = 16
	defaultStaging     = 256 << 10
	minStaging         = 16 << 10
	maxStaging         = 16 << 20
	defaultMaxTransfer = 1 << 20
	minMaxTransfer     = 4 << 10
	maxMaxTransfer     = 4 << 20
	defaultEntries     = 1024
	maxEntries         = 4096
	defaultIOQueues    = 128
	defaultControllers = 256
	maxBlockSize       = 64 << 10
	maxQuiesceTime     = 65535 * time.Millisecond
	granularityUnit    = 100 * time.Millisecond
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

// orElse sets what is zero to a default.
func orElse[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// fill checks a configuration and sets what it leaves to defaults.
func (c *Config) fill() error {
	if c.Subsystems == nil {
		c.Subsystems = []SubsystemConfig{{
			NQN:        DefaultNQN,
			Namespaces: []NamespaceConfig{{Backend: backend.NewHeap(DefaultSize)}},
		}}
	}
	if c.Ports == nil {
		c.Ports = []PortConfig{{}}
	}
	c.Referrals = append([]Referral(nil), c.Referrals...)
	if err := fillReferrals(c.Referrals); err != nil {
		return err
	}
	c.Limits.fill()
	return c.Transport.fill()
}

func fillReferrals(list []Referral) error {
	for i := range list {
		orElse(&list[i].NQN, nvme.DiscoveryNQN)
		if err := checkNQN(list[i].NQN); err != nil {
			return err
		}
		if !list[i].Address.IsValid() {
			return bad("referral without an address")
		}
	}
	return nil
}

func (tr *Transport) fill() error {
	orElse(&tr.InCapsule, defaultInCapsule)
	tr.InCapsule = max(tr.InCapsule, 0)
	orElse(&tr.MaxH2CData, defaultMaxH2CData)
	orElse(&tr.MaxC2HData, 1<<32-4)
	orElse(&tr.R2TLength, 1<<32-4)
	orElse(&tr.MaxR2T, 1)
	orElse(&tr.Staging, defaultStaging)
	switch {
	case tr.InCapsule > maxInCapsule || tr.InCapsule%16 != 0:
		return bad("in-capsule data of %d bytes", tr.InCapsule)
	case tr.MaxH2CData < pdu.MinMaxH2CData || tr.MaxH2CData > maxMaxH2CData || tr.MaxH2CData%4 != 0:
		return bad("MAXH2CDATA of %d bytes", tr.MaxH2CData)
	case tr.MaxC2HData%4 != 0:
		return bad("C2HData with up to %d bytes", tr.MaxC2HData)
	case tr.R2TLength%4 != 0:
		return bad("R2Ts for up to %d bytes", tr.R2TLength)
	case tr.MaxR2T < 1 || tr.MaxR2T > maxMaxR2T:
		return bad("%d outstanding R2Ts", tr.MaxR2T)
	case tr.CPDA > pdu.MaxPDA:
		return bad("CPDA %d", tr.CPDA)
	case tr.HeaderDigest > DigestDeclined || tr.DataDigest > DigestDeclined:
		return bad("digest %d, %d", tr.HeaderDigest, tr.DataDigest)
	case tr.Staging < minStaging || tr.Staging > maxStaging:
		return bad("staging memory of %d bytes", tr.Staging)
	case tr.SendBuffer < 0 || tr.RecvBuffer < 0:
		return bad("socket buffers of %d and %d bytes", tr.SendBuffer, tr.RecvBuffer)
	}
	return nil
}

func (l *Limits) fill() {
	orElse(&l.Connections, 1024)
	orElse(&l.Handshakes, 256)
	orElse(&l.HandshakeTime, 10*time.Second)
	orElse(&l.Linger, time.Second)
	orElse(&l.BufferMemory, 256<<20)
	orElse(&l.ConnectionBuffers, 32<<20)
	orElse(&l.TransferTime, 30*time.Second)
	l.ConnectionBuffers = max(l.ConnectionBuffers, maxMaxTransfer)
}

func checkNQN(nqn string) error {
	if nqn == "" || len(nqn) > nvme.NQNMaxLength || strings.ContainsRune(nqn, 0) {
		return bad("NQN %q", nqn)
	}
	return nil
}

func (c *SubsystemConfig) fill() error {
	if err := checkNQN(c.NQN); err != nil {
		return err
	}
	if c.NQN == nvme.DiscoveryNQN {
		return bad("a subsystem with the discovery NQN")
	}
	orElse(&c.Serial, serialOf(c.NQN))
	orElse(&c.Model, "qpoll target")
	orElse(&c.Firmware, "1")
	orElse(&c.MaxNamespaces, 1024)
	orElse(&c.MaxNSID, uint32(max(c.MaxNamespaces, 0)))
	orElse(&c.MaxTransfer, defaultMaxTransfer)
	orElse(&c.IOQueues, defaultIOQueues)
	orElse(&c.QueueEntries, defaultEntries)
	orElse(&c.Controllers, defaultControllers)
	orElse(&c.FirstController, 1)
	orElse(&c.ANAGroups, 32)
	orElse(&c.TransitionTime, 10*time.Second)
	orElse(&c.KeepAlive.Granularity, granularityUnit)
	for _, h := range c.Hosts {
		if err := checkNQN(h); err != nil {
			return err
		}
	}
	switch {
	case c.MaxNamespaces < 1 || c.MaxNSID < 1 || c.MaxNSID >= nvme.NSIDAll-1:
		return bad("%d namespaces with NSIDs up to %d", c.MaxNamespaces, c.MaxNSID)
	case c.MaxTransfer < minMaxTransfer || c.MaxTransfer > maxMaxTransfer || bits.OnesCount32(c.MaxTransfer) != 1:
		return bad("transfers of %d bytes", c.MaxTransfer)
	case c.IOQueues < 1 || c.IOQueues > 65535:
		return bad("%d I/O queues", c.IOQueues)
	case c.QueueEntries < 2 || c.QueueEntries > maxEntries:
		return bad("queues of %d entries", c.QueueEntries)
	case c.Controllers < 1 || int(c.FirstController)+c.Controllers > 0xffef+1:
		return bad("%d controllers from %d on", c.Controllers, c.FirstController)
	case c.QuiesceTime < 0 || c.QuiesceTime > maxQuiesceTime:
		return bad("quiesce time %v", c.QuiesceTime)
	case c.TransitionTime < 0 || c.TransitionTime > 255*time.Second:
		return bad("ANA transition time %v", c.TransitionTime)
	case c.KeepAlive.Granularity < 0 || c.KeepAlive.Granularity > 65535*granularityUnit || c.KeepAlive.Granularity%granularityUnit != 0:
		return bad("keep alive granularity %v", c.KeepAlive.Granularity)
	case c.KeepAlive.Max < 0:
		return bad("keep alive timeout of at most %v", c.KeepAlive.Max)
	}
	return nil
}

func (c *NamespaceConfig) fill() error {
	orElse(&c.BlockSize, 512)
	orElse(&c.ANAGroup, 1)
	switch {
	case c.Backend == nil:
		return bad("namespace %d without a backend", c.NSID)
	case c.BlockSize < 512 || c.BlockSize > maxBlockSize || bits.OnesCount32(c.BlockSize) != 1:
		return bad("namespace %d with blocks of %d bytes", c.NSID, c.BlockSize)
	}
	return nil
}

func (c *PortConfig) fill() error {
	orElse(&c.Address, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0))
	orElse(&c.Backlog, 128)
	if c.Backlog < 1 {
		return bad("backlog of %d connections", c.Backlog)
	}
	for group, s := range c.ANA {
		if group == 0 || !s.Valid() {
			return bad("ANA group %d in state %v", group, s)
		}
	}
	return nil
}
