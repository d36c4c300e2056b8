package nvme

import (
	"context"
	"errors"
	"testing"
)

// anaDisk is a controller with groups of asymmetric access.
func anaDisk(groups, namespaces uint32) *fakeDisk {
	d := eventDisk()
	d.id.CMIC, d.id.NANAGRPID, d.id.NN, d.id.MDTS = CMICANAReporting, groups, namespaces, 1
	d.id.ANAGRPMAX = groups
	return d
}

// The ANA log comes in pieces, and again when it changes between them.
func TestReadANALog(t *testing.T) {
	const namespaces = 4000 // 16 KB of them
	log := ANALog{ChangeCount: 1, Groups: []ANAGroup{{ID: 1, State: ANAOptimized}, {ID: 2, State: ANAInaccessible}}}
	for n := range uint32(namespaces) {
		g := &log.Groups[n%2]
		g.NSIDs = append(g.NSIDs, n+1)
	}
	for name, tc := range map[string]struct {
		step func(reads int) uint64 // the change count at the nth read of the beginning
		want error
	}{
		"still":       {func(int) uint64 { return 1 }, nil},
		"changes":     {func(n int) uint64 { return uint64(min(n, 2)) }, nil},
		"never still": {func(n int) uint64 { return uint64(n) }, ErrProtocol},
	} {
		d := anaDisk(2, namespaces)
		reads := 0
		d.paged(LogANA, func(off uint64) []byte {
			if off == 0 {
				reads++
			}
			now := log
			now.ChangeCount = tc.step(reads)
			b, err := now.AppendBinary(nil)
			if err != nil {
				t.Error(err)
			}
			return b
		})
		r := newRig(t, d, nil)
		got, err := r.c.ReadANALog(context.Background())
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(got.Groups) != 2 || len(got.Groups[0].NSIDs) != namespaces/2) {
			t.Errorf("%s: %d groups", name, len(got.Groups))
		}
	}
}

// Pieces of two states of the log do not fit together.
func TestReadTornANALog(t *testing.T) {
	d := anaDisk(2, 4000)
	states := [2][]byte{}
	for i := range states {
		log := ANALog{ChangeCount: uint64(i), Groups: []ANAGroup{{ID: 1, State: ANAOptimized}, {ID: 2, State: ANAInaccessible}}}
		for n := range uint32(4000) {
			g := &log.Groups[0]
			if n >= 3000-2000*uint32(i) {
				g = &log.Groups[1]
			}
			g.NSIDs = append(g.NSIDs, n+1)
		}
		var err error
		if states[i], err = log.AppendBinary(nil); err != nil {
			t.Fatal(err)
		}
	}
	pieces := 0
	d.paged(LogANA, func(uint64) []byte {
		if pieces++; pieces == 1 {
			return states[0]
		}
		return states[1]
	})
	r := newRig(t, d, nil)
	log, err := r.c.ReadANALog(context.Background())
	if err != nil || log.ChangeCount != 1 || len(log.Groups[1].NSIDs) != 3000 {
		t.Fatal(log, err)
	}
}

func TestHostileANA(t *testing.T) {
	d := anaDisk(0xffffffff, 0xffffffff)
	d.id.MDTS = 0
	d.paged(LogANA, func(uint64) []byte { return []byte{14: 0xff, 8: 0xff, 9: 0xff} })
	r := newRig(t, d, nil)
	if _, err := r.c.ReadANALog(context.Background()); err == nil {
		t.Error("a log of 65535 groups in 16 MiB of zeroes was taken")
	}
	r = newRig(t, eventDisk(), nil)
	if _, err := r.c.ReadANALog(context.Background()); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

// An ANA change is read before it is told.
func TestANAEvent(t *testing.T) {
	d := anaDisk(1, 1)
	d.id.OAES |= AsyncConfigANAChange
	b, err := (&ANALog{ChangeCount: 3, Groups: []ANAGroup{{ID: 1, State: ANANonOptimized, NSIDs: []uint32{1}}}}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	d.paged(LogANA, func(uint64) []byte { return b })
	heard := make(chan *ANALog, 1)
	r := newRig(t, d, &Config{Events: &Events{ANAChanged: func(_ *Controller, log *ANALog) { heard <- log }}})
	r.on(func() {
		if !d.queue(0).event(AsyncEvent(uint32(AsyncNotice) | uint32(NoticeANAChange)<<8 | uint32(LogANA)<<16)) {
			t.Error("no request")
		}
	})
	if log := <-heard; log.ChangeCount != 3 || log.Groups[0].State != ANANonOptimized {
		t.Errorf("%+v", log)
	}
}
