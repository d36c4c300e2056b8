package tcptest

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/qpoll/qpoll/nvme"
)

func (k *Controller) admin(r *Request) {
	switch r.Cmd.Opcode {
	case nvme.AdminIdentify:
		k.identify(r)
	case nvme.AdminSetFeatures:
		k.setFeatures(r)
	case nvme.AdminGetFeatures:
		k.getFeatures(r)
	case nvme.AdminGetLogPage:
		k.logPage(r)
	case nvme.AdminAsyncEvent:
		k.asyncEvent(r)
	case nvme.AdminKeepAlive:
		r.Complete(nvme.StatusSuccess, 0)
	case nvme.AdminAbort:
		r.Complete(nvme.StatusSuccess, 1) // not aborted
	default:
		r.Complete(nvme.StatusInvalidOpcode|nvme.StatusDNR, 0)
	}
}

func (k *Controller) identify(r *Request) {
	var b []byte
	st := nvme.StatusInvalidField | nvme.StatusDNR
	switch nvme.CNS(r.Cmd.CDW10 & 0xff) {
	case nvme.CNSController:
		b, _ = k.IdentifyController().AppendBinary(nil)
	case nvme.CNSNamespace:
		if ns := k.namespace(r.Cmd.NSID); ns != nil {
			b, _ = ns.identify().AppendBinary(nil)
		} else {
			b = make([]byte, nvme.IdentifyDataSize) // not active
		}
	case nvme.CNSNamespaceDescriptors:
		if ns := k.namespace(r.Cmd.NSID); ns != nil {
			b, _ = ns.ids.AppendBinary(nil)
		} else {
			st = nvme.StatusInvalidNamespace | nvme.StatusDNR
		}
	case nvme.CNSActiveNamespaces:
		b = k.activeList(r.Cmd.NSID)
	case nvme.CNSControllerCS:
		b = make([]byte, nvme.IdentifyDataSize) // no limits
	}
	if b == nil {
		r.Complete(st, 0)
		return
	}
	k.reply(r, b, 0)
}

// IdentifyController returns the Identify Controller data as the host gets it.
func (k *Controller) IdentifyController() *nvme.IdentifyController {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := &nvme.IdentifyController{
		VER: k.version(), CNTLID: k.id(), CNTRLTYPE: nvme.ControllerTypeIO, OAES: uint32(nvme.AsyncConfigNamespaceAttribute),
		ACL: 3, AERL: 3, KAS: 1, SQES: 0x66, CQES: 0x44, MAXCMD: 128,
		ONCS:   nvme.ONCSCompare | nvme.ONCSDatasetManagement | nvme.ONCSWriteZeroes | nvme.ONCSVerify,
		FUSES:  nvme.FUSESCompareAndWrite,
		VWC:    nvme.VWCPresent | nvme.VWCFlushAll,
		SGLS:   nvme.SGLSByteAligned | nvme.SGLSOffset | nvme.SGLSTransport,
		IOCCSZ: uint32(nvme.CommandSize+k.inCapsule()) / 16, IORCSZ: nvme.CompletionSize / 16, MSDBD: 1,
		OFCS: nvme.OFCSDisconnect, LPA: nvme.LPAExtendedData,
	}
	id.SetSerialNumber("TCPTEST")
	id.SetModelNumber("qpoll tcptest controller")
	id.SetFirmwareRevision("1")
	_ = id.SetSubsystemNQN(k.subnqn)
	for nsid := range k.namespaces {
		id.NN = max(id.NN, nsid)
	}
	if k.Identify != nil {
		k.Identify(id)
	}
	return id
}

func (k *Controller) inCapsule() int {
	switch {
	case k.InCapsule < 0:
		return 0
	case k.InCapsule == 0:
		return 4096
	}
	return k.InCapsule
}

func (k *Controller) activeList(after uint32) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := make([]byte, 0, nvme.IdentifyDataSize)
	for _, nsid := range slices.Sorted(maps.Keys(k.namespaces)) {
		if nsid > after && len(b) < cap(b) {
			b = binary.LittleEndian.AppendUint32(b, nsid)
		}
	}
	return b[:cap(b)]
}

func (k *Controller) setFeatures(r *Request) {
	id := nvme.FeatureID(r.Cmd.CDW10)
	k.mu.Lock()
	if k.features == nil {
		k.features = map[nvme.FeatureID]uint32{}
	}
	k.features[id] = r.Cmd.CDW11
	k.mu.Unlock()
	var result uint32
	if id == nvme.FeatNumberOfQueues {
		result = k.queueCounts(r.Cmd.CDW11)
	}
	r.Complete(nvme.StatusSuccess, uint64(result))
}

// queueCounts bounds the numbers of queues, 0's based, that the host asks for.
func (k *Controller) queueCounts(asked uint32) uint32 {
	most := uint32(k.granted() - 1)
	return min(asked&0xffff, most) | min(asked>>16, most)<<16
}

func (k *Controller) getFeatures(r *Request) {
	id := nvme.FeatureID(r.Cmd.CDW10)
	v, ok := k.Feature(id)
	switch {
	case id == nvme.FeatKeepAliveTimer && !ok:
		v = uint32(k.KeepAliveTimeout() / time.Millisecond)
	case id == nvme.FeatNumberOfQueues:
		v = k.queueCounts(0xffffffff)
	case id == nvme.FeatAsyncEventConfiguration:
	case !ok:
		r.Complete(nvme.StatusInvalidField|nvme.StatusDNR, 0)
		return
	}
	r.Complete(nvme.StatusSuccess, uint64(v))
}

// logPage gives pages that are all zeroes, but for the changed namespace list.
func (k *Controller) logPage(r *Request) {
	lid, retain := nvme.LogID(r.Cmd.CDW10), r.Cmd.CDW10>>15&1 != 0
	b := make([]byte, r.Len())
	switch {
	case lid > nvme.LogChangedNamespaces || lid == 0:
		r.Complete(nvme.StatusInvalidLogPage|nvme.StatusDNR, 0)
		return
	case lid == nvme.LogChangedNamespaces:
		k.mu.Lock()
		for i, nsid := range k.changed {
			if 4*i+4 <= len(b) {
				binary.LittleEndian.PutUint32(b[4*i:], nsid)
			}
		}
		if !retain {
			k.changed = nil
		}
		k.mu.Unlock()
	}
	k.reply(r, b, 0)
}

func (k *Controller) asyncEvent(r *Request) {
	k.mu.Lock()
	if len(k.aers) > 3 { // AERL
		k.mu.Unlock()
		r.Complete(nvme.StatusAsyncEventLimitExceeded|nvme.StatusDNR, 0)
		return
	}
	k.aers = append(k.aers, r)
	k.mu.Unlock()
	k.deliver()
}

// Event reports an asynchronous event, now or when the host has a request for
// it outstanding.
func (k *Controller) Event(e nvme.AsyncEvent) {
	k.mu.Lock()
	k.events = append(k.events, e)
	k.mu.Unlock()
	k.deliver()
}

// NamespaceChanged puts a namespace into the changed namespace list and, if it
// was empty, reports the event that says so.
func (k *Controller) NamespaceChanged(nsid uint32) {
	k.mu.Lock()
	first := len(k.changed) == 0
	if !slices.Contains(k.changed, nsid) {
		k.changed = append(k.changed, nsid)
		slices.Sort(k.changed)
	}
	k.mu.Unlock()
	if first {
		k.Event(nvme.MakeAsyncEvent(nvme.AsyncNotice, nvme.NoticeNamespaceAttributeChanged, nvme.LogChangedNamespaces, 0))
	}
}

// deliver answers requests for events with events.
func (k *Controller) deliver() {
	for {
		k.mu.Lock()
		if len(k.aers) == 0 || len(k.events) == 0 {
			k.mu.Unlock()
			return
		}
		r, e := k.aers[0], k.events[0]
		k.aers, k.events = k.aers[1:], k.events[1:]
		k.mu.Unlock()
		// The connection may be about to go; its own script tells.
		_, _ = r.Conn.Write(r.Response(nvme.StatusSuccess, uint64(e)))
	}
}

// EventsArmed returns how many Asynchronous Event Requests are outstanding.
func (k *Controller) EventsArmed() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.aers)
}
