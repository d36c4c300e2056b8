package lab

import (
	"errors"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/mpath/policy"
)

// MaxCores is the largest number of cores of a scenario.
const MaxCores = 256

// ErrScenario says that a scenario makes no sense; the message says why.
var ErrScenario = errors.New("bad scenario")

const (
	longest    = 24 * time.Hour
	maxBuckets = 1 << 20
)

// check tells what is wrong with a scenario, or with it for a contender.
func (s *Scenario) check(who Contender) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrScenario, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Cores < 1 || s.Cores > MaxCores:
		return bad("%d cores, it is from 1 to %d", s.Cores, MaxCores)
	case len(s.Paths) < 1 || len(s.Paths) > policy.MaxPaths:
		return bad("%d paths, it is from 1 to %d", len(s.Paths), policy.MaxPaths)
	case !(s.Arrive >= 0) || s.Arrive > 1e9:
		return bad("%v I/Os per second", s.Arrive)
	case s.Arrive == 0 && (s.Depth < 1 || s.Depth > 1<<16):
		return bad("depth %d, it is from 1 to %d", s.Depth, 1<<16)
	case !(s.Writes >= 0) || s.Writes > 1:
		return bad("a share of writes of %v", s.Writes)
	case s.Duration <= 0 || s.Duration > longest || s.Warmup < 0 || s.Warmup >= s.Duration || s.Bucket < 0 || s.Duration/s.bucket() > maxBuckets:
		return bad("a duration of %v, of which %v are not measured", s.Duration, s.Warmup)
	case len(s.Mix) == 0:
		return bad("no sizes")
	}
	for _, m := range s.Mix {
		if m.Bytes < 1 || m.Bytes > 1<<30 || !(m.Share > 0) {
			return bad("a size of %d bytes with share %v", m.Bytes, m.Share)
		}
	}
	for i := range s.Paths {
		if err := s.Paths[i].check(); err != nil {
			return bad("path %d: %v", i, err)
		}
	}
	for i := range s.Script {
		c := &s.Script[i]
		if c.Path < 0 || c.Path >= len(s.Paths) || c.At < 0 {
			return bad("change %d at %v of path %d", i, c.At, c.Path)
		}
		if err := c.To.check(); err != nil {
			return bad("change %d: %v", i, err)
		}
	}
	if who.Weights != nil && len(who.Weights) != len(s.Paths) {
		return bad("%d weights for %d paths", len(who.Weights), len(s.Paths))
	}
	return nil
}

func (p *Path) check() error {
	switch {
	case p.Delay < 0 || p.Jitter < 0 || p.Quick < 0 || p.Stall < 0 || p.Service < 0:
		return errors.New("a time below zero")
	case max(p.Delay, p.Jitter, p.Quick, p.Stall, p.Service) > longest:
		return errors.New("a time beyond a day")
	case !(p.Rate >= 0) || !(p.Disk >= 0) || p.Header < 0 || p.Header > 1<<20:
		return errors.New("a rate below zero, or a header out of range")
	case !(p.Loss >= 0) || p.Loss > 1 || !(p.Late >= 0) || p.Late > 1:
		return errors.New("a chance that is none")
	case p.Servers < 0 || p.Servers > 1024:
		return errors.New("too many servers, or fewer than none")
	case p.Delay == 0 && p.Jitter == 0 && p.Rate == 0 && (p.Servers == 0 || p.Service == 0 && p.Disk == 0):
		return errors.New("it takes no time")
	}
	return nil
}
