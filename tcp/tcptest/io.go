package tcptest

import (
	"bytes"
	"encoding/binary"

	"github.com/qpoll/qpoll/nvme"
)

// io answers an I/O command.
func (k *Controller) io(r *Request) {
	cmd := &r.Cmd
	if cmd.Opcode == nvme.OpFlush && cmd.NSID == 0xffffffff {
		r.Complete(nvme.StatusSuccess, 0)
		return
	}
	ns := k.namespace(cmd.NSID)
	if ns == nil {
		r.Complete(nvme.StatusInvalidNamespace|nvme.StatusDNR, 0)
		return
	}
	if cmd.Flags&nvme.FlagFuseMask != 0 {
		r.Complete(k.fuse(r, ns), 0)
		return
	}
	lba, blocks := LBA(cmd)
	switch cmd.Opcode {
	case nvme.OpFlush:
		r.Complete(nvme.StatusSuccess, 0)
	case nvme.OpRead:
		k.read(r, ns, lba, blocks)
	case nvme.OpWrite, nvme.OpCompare:
		if uint64(r.Len()) != blocks<<ns.shift {
			r.Complete(nvme.StatusDataSGLLengthInvalid|nvme.StatusDNR, 0)
			return
		}
		data := k.receive(r)
		r.Complete(ns.store(cmd.Opcode, lba, blocks, data), 0)
	case nvme.OpWriteZeroes, nvme.OpVerify:
		r.Complete(ns.store(cmd.Opcode, lba, blocks, nil), 0)
	case nvme.OpDatasetManagement:
		r.Complete(ns.deallocate(cmd, k.receive(r)), 0)
	default:
		r.Complete(nvme.StatusInvalidOpcode|nvme.StatusDNR, 0)
	}
}

// fuse carries out one half of Compare and Write. That is not one atomic step,
// which a namespace that several connections write to would need.
func (k *Controller) fuse(r *Request, ns *Namespace) nvme.Status {
	cmd, q := &r.Cmd, r.queue
	second := cmd.Flags&nvme.FlagFuseMask == nvme.FlagFuseSecond
	before, st := q.first, q.fused
	q.first = false
	lba, blocks := LBA(cmd)
	want := nvme.OpCompare
	if second {
		want = nvme.OpWrite
	}
	data := k.receive(r)
	switch {
	case cmd.Opcode != want || uint64(r.Len()) != blocks<<ns.shift:
		return nvme.StatusInvalidField | nvme.StatusDNR
	case second && !before:
		return nvme.StatusAbortedMissingFused | nvme.StatusDNR
	case second && !st.OK():
		return nvme.StatusAbortedFailedFused | nvme.StatusDNR
	}
	st = ns.store(cmd.Opcode, lba, blocks, data)
	if !second {
		q.first, q.fused = true, st
	}
	return st
}

// LBA returns the range of a command such as Read and Write.
func LBA(cmd *nvme.Command) (lba, blocks uint64) {
	return uint64(cmd.CDW10) | uint64(cmd.CDW11)<<32, uint64(cmd.CDW12&0xffff) + 1
}

func (k *Controller) read(r *Request, ns *Namespace, lba, blocks uint64) {
	ns.mu.Lock()
	b, ok := ns.span(lba, blocks)
	b = bytes.Clone(b)
	ns.mu.Unlock()
	switch {
	case !ok:
		r.Complete(nvme.StatusLBAOutOfRange|nvme.StatusDNR, 0)
	case uint64(r.Len()) != blocks<<ns.shift:
		r.Complete(nvme.StatusDataSGLLengthInvalid|nvme.StatusDNR, 0)
	default:
		k.reply(r, b, 0)
	}
}

// store carries out a command that changes or checks the media.
func (ns *Namespace) store(op nvme.Opcode, lba, blocks uint64, data []byte) nvme.Status {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	b, ok := ns.span(lba, blocks)
	if !ok {
		return nvme.StatusLBAOutOfRange | nvme.StatusDNR
	}
	switch op {
	case nvme.OpWrite:
		copy(b, data)
	case nvme.OpCompare:
		if !bytes.Equal(b, data) {
			return nvme.StatusCompareFailure | nvme.StatusDNR
		}
	case nvme.OpWriteZeroes:
		clear(b)
	}
	return nvme.StatusSuccess
}

const dsmRangeSize = 16

func (ns *Namespace) deallocate(cmd *nvme.Command, data []byte) nvme.Status {
	n := int(cmd.CDW10&0xff) + 1
	if len(data) != n*dsmRangeSize {
		return nvme.StatusDataSGLLengthInvalid | nvme.StatusDNR
	}
	for ; len(data) > 0; data = data[dsmRangeSize:] {
		blocks, lba := uint64(binary.LittleEndian.Uint32(data[4:])), binary.LittleEndian.Uint64(data[8:])
		op := nvme.OpVerify // only checks the range
		if cmd.CDW11&4 != 0 {
			op = nvme.OpWriteZeroes
		}
		if st := ns.store(op, lba, blocks, nil); !st.OK() {
			return st
		}
	}
	return nvme.StatusSuccess
}
