package pcietest

import (
	"errors"
	"syscall"

	"github.com/qpoll/qpoll/internal/sys"
	"github.com/qpoll/qpoll/pcie/internal/vfuser"
)

// irqCount returns how many interrupts there are of a kind. Errors and release
// requests have one each, which is taken and never signalled.
func (c *Controller) irqCount(index uint32) uint32 {
	switch index {
	case vfuser.IRQINTx, vfuser.IRQError, vfuser.IRQReq:
		return 1
	case vfuser.IRQMSIX:
		return uint32(len(c.vectors))
	}
	return 0
}

// event returns where the eventfd of an interrupt is kept.
func (c *Controller) event(index, at uint32) *int {
	switch index {
	case vfuser.IRQINTx:
		return &c.intx
	case vfuser.IRQMSIX:
		return &c.vectors[at]
	}
	return &c.others[index-vfuser.IRQError]
}

func (s *session) irqInfo(m *vfuser.Message) (reply, error) {
	i, err := vfuser.ParseIRQInfo(m.Payload)
	if err != nil || i.ArgSize < vfuser.IRQInfoSize || i.Index >= vfuser.IRQs {
		return reply{}, syscall.EINVAL
	}
	i = vfuser.IRQInfo{ArgSize: vfuser.IRQInfoSize, Flags: vfuser.IRQEventFD, Index: i.Index, Count: s.c.irqCount(i.Index)}
	return reply{payload: i.Append(nil)}, nil
}

// setIRQs takes eventfds and takes them away, signals, and masks: which does
// nothing, since drivers of MSI-X mask in its table, and their VMM looks there.
func (s *session) setIRQs(m *vfuser.Message) error {
	c := s.c
	q, err := vfuser.ParseIRQSet(m.Payload, len(m.FDs))
	if err != nil || q.Index >= vfuser.IRQs {
		return syscall.EINVAL
	}
	count := c.irqCount(q.Index)
	if q.Count == 0 && q.Flags&vfuser.IRQDataNone != 0 {
		q.Count, q.Flags = count, vfuser.IRQDataEventFD|vfuser.IRQTrigger // all are taken away
	}
	switch {
	case uint64(q.Start)+uint64(q.Count) > uint64(count):
		return syscall.EINVAL
	case q.Flags&vfuser.IRQTrigger == 0:
		return nil
	case q.Flags&vfuser.IRQDataEventFD == 0:
		return s.trigger(&q)
	}
	for i := range q.Count {
		fd := -1
		if len(m.FDs) > 0 {
			if fd = m.TakeFD(int(i)); fd >= 0 {
				if err := sys.SetNonblock(fd); err != nil {
					return errors.Join(err, sys.Close(fd))
				}
			}
		}
		if err := c.setEvent(c.event(q.Index, q.Start+i), fd); err != nil {
			return err
		}
	}
	return nil
}

// trigger signals interrupts, as if they had occurred.
func (s *session) trigger(q *vfuser.IRQSet) error {
	for i := range q.Count {
		if q.Bools != nil && q.Bools[i] == 0 {
			continue
		}
		if fd := *s.c.event(q.Index, q.Start+i); fd >= 0 {
			_ = sys.EventSignal(fd) // one that is at its largest value wakes its reader anyway
		}
	}
	return nil
}
