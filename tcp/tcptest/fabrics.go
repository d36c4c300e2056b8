package tcptest

import (
	"time"

	"github.com/qpoll/qpoll/nvme"
)

func (k *Controller) fabrics(r *Request) {
	connected := r.queue != nil && r.queue.size != 0
	switch t := r.Cmd.FabricsType(); {
	case t == nvme.FabricsConnect && !connected:
		k.connect(r)
	case !connected:
		r.Complete(nvme.StatusCommandSequenceError|nvme.StatusDNR, 0)
	case t == nvme.FabricsPropertyGet && r.Queue == 0:
		k.propertyGet(r)
	case t == nvme.FabricsPropertySet && r.Queue == 0:
		k.propertySet(r)
	case t == nvme.FabricsDisconnect && r.Queue != 0:
		r.Complete(nvme.StatusSuccess, 0)
		r.Conn.Close()
	default:
		r.Complete(nvme.StatusInvalidOpcode|nvme.StatusDNR, 0)
	}
}

// invalid rejects a Connect because of the parameter at an offset.
func invalid(r *Request, offset uint16, inData bool) {
	p := nvme.InvalidParameter{Offset: offset, InData: inData}
	r.Complete(nvme.StatusConnectInvalidParameters|nvme.StatusDNR, p.Result())
}

// Offsets of fields of the Connect command.
const (
	connectQID    = 42
	connectSQSize = 44
)

func (k *Controller) connect(r *Request) {
	cc, err := nvme.ParseConnect(&r.Cmd)
	var d nvme.ConnectData
	if err != nil || r.Len() != nvme.ConnectDataSize || d.UnmarshalBinary(r.Data) != nil {
		r.Complete(nvme.StatusConnectIncompatibleFormat|nvme.StatusDNR, 0)
		return
	}
	subnqn, err := d.SubsystemNQN()
	if err != nil || k.SubNQN != "" && subnqn != k.SubNQN {
		invalid(r, nvme.ConnectDataSubNQNOffset, true)
		return
	}
	host, err := d.HostName()
	switch {
	case err != nil:
		invalid(r, nvme.ConnectDataHostNQNOffset, true)
		return
	case k.HostNQN != "" && host != k.HostNQN:
		r.Complete(nvme.StatusConnectInvalidHost|nvme.StatusDNR, 0)
		return
	case cc.SQSize == 0 || cc.QID != 0 && cc.SQSize > k.capabilities().MQES():
		invalid(r, connectSQSize, false)
		return
	case cc.QID == 0 && d.ControllerID != nvme.ControllerIDDynamic,
		cc.QID != 0 && d.ControllerID != k.id():
		invalid(r, nvme.ConnectDataControllerIDOffset, true)
		return
	}
	k.join(r, &cc, subnqn)
}

// join accepts a queue.
func (k *Controller) join(r *Request, cc *nvme.ConnectCommand, subnqn string) {
	q := r.queue
	k.mu.Lock()
	if k.queues == nil {
		k.queues = map[uint16]*queue{}
	}
	if cc.QID != 0 && (!k.cc.EN() || k.queues[cc.QID] != nil || int(cc.QID) > k.granted()) {
		k.mu.Unlock()
		invalid(r, connectQID, false)
		return
	}
	if cc.QID == 0 { // a new association
		k.cc, k.cstsReads, k.features, k.events, k.changed = 0, 0, nil, nil, nil
		k.subnqn, k.kato = subnqn, cc.KeepAlive
		clear(k.queues)
	}
	q.id, q.size, q.off = cc.QID, uint32(cc.SQSize)+1, cc.Attributes&nvme.ConnectDisableFlowControl != 0
	r.Queue = q.id
	k.queues[q.id] = q
	k.mu.Unlock()
	cpl := nvme.Completion{CID: r.Cmd.CID, Result: nvme.ConnectResponse{ControllerID: k.id()}.Result(), SQHead: q.head()}
	if q.off {
		cpl.SQHead = nvme.SQHeadNoFlowControl
	}
	r.send(r.Conn.CapsuleResp(&cpl))
}

func (k *Controller) id() uint16 {
	if k.ID == 0 {
		return 1
	}
	return k.ID
}

func (k *Controller) granted() int {
	if k.Queues == 0 {
		return 16
	}
	return k.Queues
}

func (k *Controller) capabilities() nvme.CAP {
	if k.CAP != 0 {
		return k.CAP
	}
	return nvme.CAPFields{MQES: 1023, CQR: true, TO: time.Second, CSS: nvme.CAPCSSNVM}.CAP()
}

func (k *Controller) version() nvme.VS {
	if k.VS != 0 {
		return k.VS
	}
	return nvme.Version20
}

func (k *Controller) propertyGet(r *Request) {
	p, err := nvme.ParsePropertyGet(&r.Cmd)
	v, ok := k.property(p.Offset)
	if err != nil || !ok || p.Size != nvme.PropertySize(p.Offset) {
		r.Complete(nvme.StatusInvalidField|nvme.StatusDNR, 0)
		return
	}
	r.Complete(nvme.StatusSuccess, v)
}

func (k *Controller) property(offset uint32) (v uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch offset {
	case nvme.RegCAP:
		return uint64(k.capabilities()), true
	case nvme.RegVS:
		return uint64(k.version()), true
	case nvme.RegCC:
		return uint64(k.cc), true
	case nvme.RegCSTS:
		n := k.cstsReads
		k.cstsReads++
		if k.CSTS != nil {
			return uint64(k.CSTS(k.cc, n)), true
		}
		f := nvme.CSTSFields{RDY: k.cc.EN()}
		if k.cc.SHN() != nvme.CCSHNNone {
			f.SHST = nvme.CSTSSHSTComplete
		}
		return uint64(f.CSTS()), true
	case nvme.RegNSSR:
		return 0, true
	case nvme.RegCRTO:
		return uint64(nvme.MakeCRTO(k.capabilities().TO(), 0)), true
	}
	return 0, false
}

func (k *Controller) propertySet(r *Request) {
	p, err := nvme.ParsePropertySet(&r.Cmd)
	if err != nil || p.Offset != nvme.RegCC || p.Size != 4 {
		r.Complete(nvme.StatusInvalidField|nvme.StatusDNR, 0)
		return
	}
	k.mu.Lock()
	k.cc, k.cstsReads = nvme.CC(p.Value), 0
	k.mu.Unlock()
	r.Complete(nvme.StatusSuccess, 0)
}
