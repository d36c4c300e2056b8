package nvme

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// regDisk is a disk with registers of its own: each read of CSTS takes the
// next value of a script, the last one for ever.
type regDisk struct {
	*fakeDisk
	cstsScript []uint64
	crto       uint64
	trace      []string
}

func (d *regDisk) Property(ctx context.Context, off uint32, size int) (uint64, error) {
	switch off {
	case RegCSTS:
		v := d.cstsScript[0]
		if len(d.cstsScript) > 1 {
			d.cstsScript = d.cstsScript[1:]
		}
		d.trace = append(d.trace, fmt.Sprintf("CSTS=%x", v))
		return v, nil
	case RegCRTO:
		d.trace = append(d.trace, "CRTO")
		return d.crto, nil
	}
	return d.fakeDisk.Property(ctx, off, size)
}

func (d *regDisk) SetProperty(ctx context.Context, off uint32, size int, v uint64) error {
	if off == RegCC {
		d.trace = append(d.trace, fmt.Sprintf("CC.EN=%v", CC(v).EN()))
	}
	return d.fakeDisk.SetProperty(ctx, off, size, v)
}

// The order of registers in enabling, whatever state the controller was left
// in (Base Specification 3.1.4.5: EN must not change while RDY differs).
func TestEnableSequence(t *testing.T) {
	const rdy, cfs = 1, 2
	for name, tc := range map[string]struct {
		cc   uint64
		csts []uint64
		want string
		err  error
	}{
		"disabled":               {0, []uint64{0, 0, rdy}, "CSTS=0 CC.EN=true CSTS=0 CSTS=1", nil},
		"enabled":                {1, []uint64{rdy, rdy, 0, 0, rdy}, "CSTS=1 CC.EN=false CSTS=1 CSTS=0 CC.EN=true CSTS=0 CSTS=1", nil},
		"getting ready":          {1, []uint64{0, 0, rdy, 0, rdy}, "CSTS=0 CSTS=0 CSTS=1 CC.EN=false CSTS=0 CC.EN=true CSTS=1", nil},
		"getting disabled":       {0, []uint64{rdy, rdy, 0, rdy}, "CSTS=1 CSTS=1 CSTS=0 CC.EN=true CSTS=1", nil},
		"fatal before":           {1, []uint64{cfs | rdy, cfs, rdy}, "CSTS=3 CC.EN=false CSTS=2 CC.EN=true CSTS=1", nil},
		"fatal, never was ready": {1, []uint64{cfs, 0, rdy}, "CSTS=2 CC.EN=false CSTS=0 CC.EN=true CSTS=1", nil},
		"fatal while enabling":   {0, []uint64{0, cfs}, "CSTS=0 CC.EN=true CSTS=2", ErrFatal},
		"ready and fatal":        {0, []uint64{0, cfs | rdy}, "CSTS=0 CC.EN=true CSTS=3", ErrFatal},
		"gone":                   {0, []uint64{0xffffffff}, "CSTS=ffffffff", ErrFatal},
	} {
		t.Run(name, func(t *testing.T) {
			d := &regDisk{fakeDisk: newFakeDisk(512, 64), cstsScript: tc.csts}
			d.cc = tc.cc
			p := startPoller(t)
			c, err := NewController(context.Background(), d, &Config{Poller: p})
			got := strings.Join(d.trace, " ")
			if err == nil {
				d.cstsScript = []uint64{uint64(CSTSSHSTComplete) << 2}
				c.Close(context.Background())
			}
			if !errors.Is(err, tc.err) || got != tc.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, tc.want)
			}
		})
	}
}

// How long a controller may take: CAP.TO, or CRTO where it has one, whichever
// is longer.
func TestReadyTimeout(t *testing.T) {
	for _, tc := range []struct {
		cap  CAPFields
		crto CRTO
		want time.Duration
	}{
		{CAPFields{TO: 0}, 0, 500 * time.Millisecond},
		{CAPFields{TO: 255 * 500 * time.Millisecond}, 0, 128 * time.Second},
		{CAPFields{TO: 2 * time.Second, CRWMS: true}, MakeCRTO(200*time.Second, 0), 200*time.Second + 500*time.Millisecond},
		{CAPFields{TO: 3 * time.Second, CRWMS: true}, MakeCRTO(time.Second, 0), 3*time.Second + 500*time.Millisecond},
		{CAPFields{TO: 2 * time.Second}, MakeCRTO(200*time.Second, 0), 2*time.Second + 500*time.Millisecond},
	} {
		d := &regDisk{fakeDisk: newFakeDisk(512, 64), crto: uint64(tc.crto)}
		c := &Controller{t: d}
		if got := c.readyTimeout(context.Background(), tc.cap.CAP()); got != tc.want {
			t.Errorf("%+v, %x: %v, want %v", tc.cap, tc.crto, got, tc.want)
		}
		if slices.Contains(d.trace, "CRTO") != tc.cap.CRWMS {
			t.Error("CRTO read without CAP.CRMS, or not with it")
		}
	}
}

// What Identify Controller says must be about the controller that Connect led
// to, and that was there before.
func TestIdentifyMismatch(t *testing.T) {
	ctx := context.Background()
	d := newFakeDisk(512, 64)
	d.cntlid = 7
	if _, err := NewController(ctx, d, &Config{Poller: startPoller(t)}); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "controller identifier") {
		t.Error(err)
	}
	d = newFakeDisk(512, 64)
	d.cntlid = 0xffff // the transport does not know
	c, err := NewController(ctx, d, &Config{Poller: startPoller(t), ReconnectDelay: time.Millisecond, CtrlLossTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	d.mu.Lock()
	d.id.SetSubsystemNQN("nqn.2026-01.io.qpoll:other")
	d.mu.Unlock()
	if err := c.Reset(ctx); !errors.Is(err, ErrProtocol) || !errors.Is(err, ErrDead) {
		t.Error(err)
	}
}
