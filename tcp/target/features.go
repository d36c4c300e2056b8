package target

import (
	"math"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// features are the values of the features that a controller has.
type features struct {
	values    [nvme.FeatWriteAtomicity + 1]uint32 // of those that only keep theirs
	events    uint32
	behaviour [512]byte
	stamp     nvme.Timestamp // at stampAt
	stampAt   int64
	queues    nvme.NumberOfQueues
}

// featureKind is what can be done with a feature.
type featureKind uint8

const (
	featureNone     featureKind = iota
	featureKept                 // its value has no consequences
	featureHandled              // has code of its own
	featureReadOnly             // has code of its own
)

// featureOf returns the kind of a feature of the controller.
func (ctrl *controller) featureOf(id nvme.FeatureID) featureKind {
	switch id {
	case nvme.FeatAsyncEventConfiguration, nvme.FeatKeepAliveTimer:
		return featureHandled
	case nvme.FeatHostIdentifier:
		return featureReadOnly
	}
	if ctrl.sub.discovery {
		return featureNone
	}
	switch id {
	case nvme.FeatArbitration, nvme.FeatPowerManagement, nvme.FeatTemperatureThreshold, nvme.FeatErrorRecovery,
		nvme.FeatVolatileWriteCache, nvme.FeatWriteAtomicity:
		return featureKept
	case nvme.FeatNumberOfQueues, nvme.FeatTimestamp, nvme.FeatHostBehavior, nvme.FeatIOCommandSetProfile:
		return featureHandled
	}
	return featureNone
}

// reset gives all features their defaults, at the time of the poller.
func (f *features) reset(ctrl *controller) {
	*f = features{
		queues:  nvme.MakeNumberOfQueues(ctrl.sub.cfg.IOQueues, ctrl.sub.cfg.IOQueues),
		stampAt: ctrl.admin.w.p.Now(),
	}
	f.values[nvme.FeatVolatileWriteCache] = 1
}

// getFeatures executes a Get Features command.
func (c *conn) getFeatures(r *request) {
	cmd, err := nvme.ParseGetFeatures(&r.cmd)
	kind := c.ctrl.featureOf(cmd.FeatureID)
	if err != nil || kind == featureNone || cmd.Select > nvme.SelectCapabilities {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	f := &c.ctrl.features
	switch cmd.Select {
	case nvme.SelectCapabilities:
		v := nvme.FeatureCapabilityChangeable
		if kind == featureReadOnly {
			v = 0
		}
		c.status(r, nvme.StatusSuccess, uint64(v))
		return
	case nvme.SelectDefault, nvme.SelectSaved: // nothing can be saved
		f = &features{}
		f.reset(c.ctrl)
	}
	c.getFeature(r, cmd, f)
}

// getFeature answers with the value of a feature in f.
func (c *conn) getFeature(r *request, cmd nvme.GetFeaturesCommand, f *features) {
	ctrl := c.ctrl
	v := uint32(0)
	switch cmd.FeatureID {
	case nvme.FeatAsyncEventConfiguration:
		v = f.events
	case nvme.FeatKeepAliveTimer:
		if f == &ctrl.features {
			v = nvme.KeepAliveValue(ctrl.kato)
		}
	case nvme.FeatNumberOfQueues:
		v = uint32(f.queues)
	case nvme.FeatIOCommandSetProfile:
	case nvme.FeatHostBehavior:
		data := f.behaviour
		c.replyBytes(r, uint64(len(data)), data[:], nil)
		return
	case nvme.FeatTimestamp:
		stamp := f.now(c.w.now)
		c.replyBytes(r, uint64(len(stamp)), stamp[:], nil)
		return
	case nvme.FeatHostIdentifier:
		// Over fabrics it is always the extended one.
		if cmd.Value&1 == 0 {
			c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
			return
		}
		c.replyBytes(r, uint64(len(ctrl.hostID)), ctrl.hostID[:], nil)
		return
	default:
		v = f.values[cmd.FeatureID]
	}
	c.status(r, nvme.StatusSuccess, uint64(v))
}

// now is the timestamp as it is now.
func (f *features) now(at int64) nvme.Timestamp {
	ms := f.stamp.Milliseconds() + uint64(at-f.stampAt)/uint64(time.Millisecond)
	stamp := nvme.MakeTimestamp(time.UnixMilli(int64(min(ms, math.MaxInt64))))
	stamp[6] = f.stamp[6]
	return stamp
}

// setFeatures executes a Set Features command.
func (c *conn) setFeatures(r *request, data []byte) {
	cmd, err := nvme.ParseSetFeatures(&r.cmd)
	kind := c.ctrl.featureOf(cmd.FeatureID)
	s := nvme.StatusSuccess
	switch {
	case err != nil || kind == featureNone:
		s = nvme.StatusInvalidField
	case cmd.Save:
		s = nvme.StatusFeatureNotSaveable
	case kind == featureReadOnly:
		s = nvme.StatusFeatureNotChangeable
		if cmd.FeatureID == nvme.FeatHostIdentifier {
			s = nvme.StatusCommandSequenceError // Connect has set it
		}
	}
	if s != 0 {
		c.fail(r, s|nvme.StatusDNR)
		return
	}
	switch cmd.FeatureID {
	case nvme.FeatTimestamp:
		c.takeData(r, data, uint32(len(nvme.Timestamp{})))
	case nvme.FeatHostBehavior:
		c.takeData(r, data, uint32(len(features{}.behaviour)))
	default:
		c.setFeature(r, cmd.FeatureID, cmd.Value)
	}
}

// setFeature sets a feature whose value is dword 11.
func (c *conn) setFeature(r *request, id nvme.FeatureID, v uint32) {
	ctrl := c.ctrl
	f := &ctrl.features
	result := uint64(0)
	switch id {
	case nvme.FeatAsyncEventConfiguration:
		ctrl.setEvents(v)
	case nvme.FeatKeepAliveTimer:
		ctrl.setKATO(nvme.ParseKeepAlive(v))
	case nvme.FeatNumberOfQueues:
		if uint16(v) == 0xffff || v>>16 == 0xffff {
			c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
			return
		}
		// What is granted does not depend on what is asked for.
		result = uint64(f.queues)
	case nvme.FeatIOCommandSetProfile:
		if v != 0 { // there is one combination
			c.fail(r, nvme.StatusIOCommandSetCombination|nvme.StatusDNR)
			return
		}
	default:
		f.values[id] = v
	}
	c.status(r, nvme.StatusSuccess, result)
}

// setFeatureData sets a feature whose value has come as data.
func (c *conn) setFeatureData(r *request) {
	f := &c.ctrl.features
	switch nvme.FeatureID(r.cmd.CDW10) {
	case nvme.FeatTimestamp:
		copy(f.stamp[:], r.op.Data[:6])
		f.stamp[6], f.stampAt = nvme.TimestampOriginHost, c.w.now
	case nvme.FeatHostBehavior:
		copy(f.behaviour[:], r.op.Data)
	}
	c.status(r, nvme.StatusSuccess, 0)
}
