package target

import (
	"slices"

	"github.com/qpoll/qpoll/nvme"
)

// identify executes an Identify command.
func (c *conn) identify(r *request) {
	cmd, err := nvme.ParseIdentify(&r.cmd)
	if err != nil {
		c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
		return
	}
	var data []byte
	var s nvme.Status
	if c.ctrl.sub.discovery {
		if cmd.CNS != nvme.CNSController {
			c.fail(r, nvme.StatusInvalidField|nvme.StatusDNR)
			return
		}
		data, err = c.ctrl.identifyController().AppendBinary(nil)
	} else {
		data, s, err = c.ctrl.identifyData(cmd)
	}
	if s != 0 {
		c.fail(r, s|nvme.StatusDNR)
		return
	}
	c.replyBytes(r, nvme.IdentifyDataSize, data, err)
}

// identifyData returns what an Identify command asks for, or a status.
func (ctrl *controller) identifyData(cmd nvme.IdentifyCommand) ([]byte, nvme.Status, error) {
	sub := ctrl.sub
	sub.t.mu.Lock()
	defer sub.t.mu.Unlock()
	switch cmd.CNS {
	case nvme.CNSController:
		b, err := ctrl.identifyController().AppendBinary(nil)
		return b, 0, err
	case nvme.CNSActiveNamespaces, nvme.CNSAllocatedNamespaces:
		return sub.namespaceList(cmd.NSID)
	case nvme.CNSActiveNamespacesCS, nvme.CNSAllocatedNamespacesCS:
		if cmd.CSI != nvme.CSINVM {
			return nil, nvme.StatusInvalidIOCommandSet, nil
		}
		return sub.namespaceList(cmd.NSID)
	case nvme.CNSControllerCS:
		if cmd.CSI != nvme.CSINVM {
			return nil, nvme.StatusInvalidIOCommandSet, nil
		}
		b, err := (&nvme.IdentifyControllerNVM{VER: nvme.Version11}).AppendBinary(nil)
		return b, 0, err
	case nvme.CNSNVMSets, nvme.CNSUUIDs, nvme.CNSEnduranceGroups, nvme.CNSDomains, nvme.CNSNamespaceGranularity,
		nvme.CNSPrimaryController, nvme.CNSSecondaryControllers:
		return nil, nvme.StatusInvalidField, nil
	case nvme.CNSControllers:
		return sub.controllerList(cmd.ControllerID)
	case nvme.CNSIOCommandSets:
		b, err := nvme.AppendIOCommandSets(nil, []nvme.IOCommandSetVector{1 << nvme.CSINVM})
		return b, 0, err
	}
	return sub.identifyNamespace(cmd)
}

// identifyNamespace returns what an Identify command asks for about one
// namespace, or a status.
func (s *Subsystem) identifyNamespace(cmd nvme.IdentifyCommand) ([]byte, nvme.Status, error) {
	switch cmd.CNS {
	case nvme.CNSNamespace, nvme.CNSNamespaceDescriptors, nvme.CNSNamespaceCS, nvme.CNSNamespaceIndependent,
		nvme.CNSAllocatedNamespace, nvme.CNSAllocatedNamespaceCS, nvme.CNSAllocatedNSIndependent, nvme.CNSNamespaceControllers:
	default:
		return nil, nvme.StatusInvalidField, nil
	}
	byCS := cmd.CNS == nvme.CNSNamespaceCS || cmd.CNS == nvme.CNSAllocatedNamespaceCS
	if byCS && cmd.CSI != nvme.CSINVM {
		return nil, nvme.StatusInvalidIOCommandSet, nil
	}
	n := s.find(cmd.NSID)
	if n == nil {
		return s.identifyNone(cmd)
	}
	var b []byte
	var err error
	switch cmd.CNS {
	case nvme.CNSNamespaceDescriptors:
		id := nvme.NamespaceIdentity{EUI64: n.cfg.EUI64, NGUID: n.cfg.NGUID, UUID: n.cfg.UUID, CSI: nvme.CSINVM, HasCSI: true}
		b, err = id.AppendBinary(nil)
	case nvme.CNSNamespaceCS, nvme.CNSAllocatedNamespaceCS:
		b, err = (&nvme.IdentifyNamespaceNVM{}).AppendBinary(nil)
	case nvme.CNSNamespaceIndependent, nvme.CNSAllocatedNSIndependent:
		b, err = n.independent().AppendBinary(nil)
	case nvme.CNSNamespaceControllers:
		return s.controllerList(cmd.ControllerID)
	default:
		b, err = n.data().AppendBinary(nil)
	}
	return b, 0, err
}

// identifyNone is for an NSID without a namespace: it is invalid beyond NN, and
// inactive, for which some structures are zeros, below. The broadcast value
// asks for what all namespaces have in common.
func (s *Subsystem) identifyNone(cmd nvme.IdentifyCommand) ([]byte, nvme.Status, error) {
	zeros := cmd.CNS == nvme.CNSNamespace || cmd.CNS == nvme.CNSNamespaceCS ||
		cmd.CNS == nvme.CNSAllocatedNamespace || cmd.CNS == nvme.CNSAllocatedNamespaceCS
	switch {
	case cmd.NSID == 0 || cmd.NSID > s.cfg.MaxNSID && cmd.NSID != nvme.NSIDAll:
		return nil, nvme.StatusInvalidNamespace, nil
	case cmd.NSID == nvme.NSIDAll && !zeros:
		return nil, nvme.StatusInvalidNamespace, nil
	case zeros:
		return make([]byte, nvme.IdentifyDataSize), 0, nil
	}
	return nil, nvme.StatusInvalidField, nil
}

// namespaceList returns the list of namespaces above an NSID.
func (s *Subsystem) namespaceList(after uint32) ([]byte, nvme.Status, error) {
	if after >= nvme.NSIDAll-1 {
		return nil, nvme.StatusInvalidNamespace, nil
	}
	at, found := s.search(after)
	if found {
		at++
	}
	const most = nvme.IdentifyDataSize / 4
	var ids []uint32
	for _, n := range s.namespaces[at:] {
		if len(ids) == most {
			break
		}
		ids = append(ids, n.nsid)
	}
	b, err := nvme.AppendNamespaceList(nil, ids)
	return b, 0, err
}

// controllerList returns the list of controllers from an identifier on. All
// namespaces are attached to all of them.
func (s *Subsystem) controllerList(from uint16) ([]byte, nvme.Status, error) {
	var ids []uint16
	for id := range s.controllers {
		if id >= from {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	const most = nvme.IdentifyDataSize/2 - 1
	b, err := nvme.AppendIdentifierList(nil, ids[:min(len(ids), most)])
	return b, 0, err
}
