package pcietest

import (
	"encoding/binary"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// features are the values of the features.
type features struct {
	values    [256]uint32 // of those that are a dword
	sqs, cqs  int         // granted
	asked     bool        // Number of Queues was set
	behaviour [512]byte
	stamp     nvme.Timestamp // at stampAt
	stampAt   int64
	host      [16]byte
	weights   [4]uint8 // by priority
	keepAlive int64    // ns; 0 is off
}

func (f *features) reset(cfg *Config) {
	*f = features{sqs: cfg.IOQueues, cqs: cfg.IOQueues}
	f.values[nvme.FeatVolatileWriteCache] = 1
	f.values[nvme.FeatTemperatureThreshold] = 273 + 70
	f.values[nvme.FeatArbitration] = 7 // no limit of a burst
}

// featureKind says how a feature behaves.
type featureKind uint8

const (
	noFeature   featureKind = iota
	keptFeature             // a dword without consequences
	dwordFeature
	dataFeature
)

// featureSize is the size of the features that are data.
func featureSize(id nvme.FeatureID, v uint32) int {
	switch id {
	case nvme.FeatTimestamp:
		return 8
	case nvme.FeatHostBehavior:
		return 512
	case nvme.FeatHostIdentifier:
		if v&1 != 0 {
			return 16
		}
		return 8
	}
	return 0
}

func featureOf(id nvme.FeatureID) featureKind {
	switch id {
	case nvme.FeatPowerManagement, nvme.FeatTemperatureThreshold, nvme.FeatErrorRecovery, nvme.FeatVolatileWriteCache,
		nvme.FeatInterruptCoalescing, nvme.FeatWriteAtomicity:
		return keptFeature
	case nvme.FeatArbitration, nvme.FeatNumberOfQueues, nvme.FeatInterruptVector, nvme.FeatAsyncEventConfiguration,
		nvme.FeatKeepAliveTimer, nvme.FeatIOCommandSetProfile:
		return dwordFeature
	case nvme.FeatTimestamp, nvme.FeatHostBehavior, nvme.FeatHostIdentifier:
		return dataFeature
	}
	return noFeature
}

// getFeatures executes Get Features (5.1.11).
func (c *Controller) getFeatures(cmd *nvme.Command) (nvme.Status, uint64) {
	g, err := nvme.ParseGetFeatures(cmd)
	kind := featureOf(g.FeatureID)
	if err != nil || kind == noFeature || g.Select > nvme.SelectCapabilities {
		return invalidField, 0
	}
	f := &c.features
	switch g.Select {
	case nvme.SelectCapabilities:
		return 0, uint64(nvme.FeatureCapabilityChangeable)
	case nvme.SelectDefault, nvme.SelectSaved: // nothing is saved
		f = &features{}
		f.reset(&c.cfg)
	}
	if kind == dataFeature {
		return c.sendData(cmd, f.data(g.FeatureID, c.now), featureSize(g.FeatureID, g.Value)), 0
	}
	v := f.values[g.FeatureID]
	switch g.FeatureID {
	case nvme.FeatNumberOfQueues:
		v = uint32(nvme.MakeNumberOfQueues(f.sqs, f.cqs))
	case nvme.FeatInterruptVector:
		if int(uint16(g.Value)) >= max(1, len(c.vectors)) {
			return invalidField, 0
		}
		v = g.Value & 0xffff
	}
	return 0, uint64(v)
}

func (f *features) data(id nvme.FeatureID, now int64) []byte {
	switch id {
	case nvme.FeatTimestamp:
		ms := f.stamp.Milliseconds() + uint64(now-f.stampAt)/uint64(time.Millisecond)
		b := binary.LittleEndian.AppendUint64(nil, ms&(1<<48-1))
		b[6] = f.stamp[6]
		return b
	case nvme.FeatHostBehavior:
		return f.behaviour[:]
	}
	return f.host[:]
}

// setFeatures executes Set Features (5.1.25).
func (c *Controller) setFeatures(cmd *nvme.Command) (nvme.Status, uint64) {
	s, err := nvme.ParseSetFeatures(cmd)
	kind := featureOf(s.FeatureID)
	switch {
	case err != nil || kind == noFeature:
		return invalidField, 0
	case s.Save:
		return nvme.StatusFeatureNotSaveable | nvme.StatusDNR, 0
	case kind == keptFeature:
		c.features.values[s.FeatureID] = s.Value
		return 0, 0
	case kind == dwordFeature:
		return c.setDword(s.FeatureID, s.Value)
	}
	b, st := c.fetchData(cmd, featureSize(s.FeatureID, s.Value))
	if st != 0 {
		return st, 0
	}
	f := &c.features
	switch s.FeatureID {
	case nvme.FeatTimestamp:
		copy(f.stamp[:6], b)
		f.stamp[6], f.stampAt = nvme.TimestampOriginHost, c.now
	case nvme.FeatHostBehavior:
		copy(f.behaviour[:], b)
	case nvme.FeatHostIdentifier:
		f.host = [16]byte{}
		copy(f.host[:], b)
	}
	return 0, 0
}

// setDword sets a feature that has consequences.
func (c *Controller) setDword(id nvme.FeatureID, v uint32) (nvme.Status, uint64) {
	f := &c.features
	switch id {
	case nvme.FeatNumberOfQueues:
		return c.setQueues(v)
	case nvme.FeatArbitration:
		f.weights = [4]uint8{nvme.PriorityLow: uint8(v >> 8), nvme.PriorityMedium: uint8(v >> 16), nvme.PriorityHigh: uint8(v >> 24)}
	case nvme.FeatKeepAliveTimer:
		f.keepAlive = int64(nvme.ParseKeepAlive(v))
		c.alive = c.now
	case nvme.FeatIOCommandSetProfile:
		if v&0x1ff != 0 {
			return nvme.StatusIOCommandSetCombination | nvme.StatusDNR, 0
		}
	case nvme.FeatInterruptVector:
		if int(uint16(v)) >= max(1, len(c.vectors)) {
			return invalidField, 0
		}
	}
	f.values[id] = v
	return 0, 0
}

// setQueues executes Set Features for the Number of Queues: not more than asked
// for, and not while there are I/O queues (5.1.25.1.7).
func (c *Controller) setQueues(v uint32) (nvme.Status, uint64) {
	sqs, cqs := int(v&0xffff)+1, int(v>>16)+1
	if sqs > 65535 || cqs > 65535 {
		return invalidField, 0
	}
	for i, q := range c.cqs {
		if i > 0 && q != nil {
			return nvme.StatusCommandSequenceError | nvme.StatusDNR, 0
		}
	}
	f := &c.features
	f.sqs, f.cqs, f.asked = min(sqs, c.cfg.IOQueues), min(cqs, c.cfg.IOQueues), true
	return 0, uint64(nvme.MakeNumberOfQueues(f.sqs, f.cqs))
}

// expireKeepAlive is what happens when the host was not heard of for too long:
// a fatal error (3.9).
func (c *Controller) expireKeepAlive() {
	c.features.keepAlive = 0
	c.regs.csts.CFS = true
}
