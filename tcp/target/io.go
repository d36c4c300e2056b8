//qpoll:hot

package target

import (
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// ioCommand executes a command of an I/O queue.
func (c *conn) ioCommand(r *request, data []byte) {
	if c.fused != nil || r.cmd.Flags&nvme.FlagFuseMask != 0 {
		c.fusedCommand(r, data)
		return
	}
	switch r.cmd.Opcode {
	case nvme.OpRead:
		c.read(r)
	case nvme.OpWrite:
		c.write(r, data, backend.Write)
	default:
		c.otherCommand(r, data)
	}
}

// read executes a Read.
func (c *conn) read(r *request) {
	e, s := c.locate(r)
	if s == 0 {
		s = c.checkTransport(&r.cmd, r.op.Length)
	}
	if s != 0 {
		c.fail(r, s)
		return
	}
	c.stats.reads++
	c.stats.readBytes += uint64(r.op.Length)
	r.op.Kind = backend.Read
	r.length, r.toHost = uint32(r.op.Length), true
	c.bind(r, e)
	if !e.ch.views && !c.provide(r, starvedRead) {
		return
	}
	c.submit(r)
}

// write executes a Write or a Compare.
func (c *conn) write(r *request, data []byte, kind backend.Kind) {
	e, s := c.locate(r)
	if s == 0 && kind == backend.Write {
		s = e.writable
	}
	if s == 0 && r.op.Length > int64(c.out.maxTransfer) {
		s = nvme.StatusInvalidField | nvme.StatusDNR
	}
	if s != 0 {
		c.fail(r, s)
		return
	}
	c.stats.writes++
	c.stats.writtenBytes += uint64(r.op.Length)
	r.op.Kind = kind
	r.op.FUA = r.cmd.CDW12&cdw12FUA != 0
	c.bind(r, e)
	c.takeData(r, data, uint32(r.op.Length))
}

// takeData executes a command with n bytes of data from the host once they are
// there: at once if they came with the capsule.
func (c *conn) takeData(r *request, data []byte, n uint32) {
	sgl := r.cmd.SGL()
	if sgl.Is(nvme.SGLTypeDataBlock, nvme.SGLSubtypeOffset) {
		if s := c.checkInCapsule(&r.cmd, sgl, uint64(len(data)), n); s != 0 {
			c.fail(r, s)
			return
		}
		r.op.Data = data[sgl.Address:][:n:n]
		c.dataArrived(r)
		return
	}
	if s := c.checkTransport(&r.cmd, int64(n)); s != 0 {
		c.fail(r, s)
		return
	}
	r.length = n
	if (r.ns == nil || r.op.Kind != backend.Write || !r.ns.discards) && !c.provide(r, starvedWrite) {
		return
	}
	c.requestData(r)
}

// dataArrived executes a command whose data from the host is complete.
func (c *conn) dataArrived(r *request) {
	switch {
	case r.cmd.Flags&nvme.FlagFuseMask != 0:
		c.fusedArrived(r)
	case r.status != 0:
		c.fail(r, r.status)
	case c.qid == 0 || r.cmd.Opcode == nvme.OpFabrics:
		c.adminData(r)
	case r.cmd.Opcode == nvme.OpDatasetManagement:
		c.deallocate(r)
	default:
		c.submit(r)
	}
}

// submit gives a request to its backend.
func (c *conn) submit(r *request) {
	r.state = reqExecuting
	if r.ns.ch.Submit(&r.op) {
		c.executed(r)
	}
}

// bind makes a request a user of the namespace.
func (c *conn) bind(r *request, e *entry) {
	r.ns = e.ch
	e.ch.users++
}

// Bits of command dword 12.
const (
	cdw12FUA  = 1 << 30
	cdw12DEAC = 1 << 25
)

// locate finds the namespace of a command and the range of bytes that it is
// about. Of several things wrong it names the one that comes first: the
// namespace, its state, the range, the length.
func (c *conn) locate(r *request) (*entry, nvme.Status) {
	cmd := &r.cmd
	e := c.view.find(cmd.NSID)
	if e == nil {
		return nil, nvme.StatusInvalidNamespace | nvme.StatusDNR
	}
	if e.barred != 0 {
		return nil, e.barred
	}
	lba := uint64(cmd.CDW10) | uint64(cmd.CDW11)<<32
	n := uint64(cmd.CDW12&0xffff) + 1
	if lba >= e.blocks || n > e.blocks-lba {
		return nil, nvme.StatusLBAOutOfRange | nvme.StatusDNR
	}
	r.op.Offset, r.op.Length = int64(lba<<e.shift), int64(n<<e.shift)
	return e, 0
}

// checkTransport checks that a command's data goes by PDUs of its own and is
// length bytes.
func (c *conn) checkTransport(cmd *nvme.Command, length int64) nvme.Status {
	sgl := cmd.SGL()
	if cmd.Flags&nvme.FlagPSDTMask == nvme.FlagSGL && sgl.Is(nvme.SGLTypeTransportDataBlock, nvme.SGLSubtypeTransport) &&
		int64(sgl.Length) == length && length <= int64(c.out.maxTransfer) {
		return 0
	}
	return c.badTransport(cmd, length)
}

// checkInCapsule checks that a command's data is the n bytes that the SGL
// descriptor says are in the capsule, which has had bytes of it.
func (c *conn) checkInCapsule(cmd *nvme.Command, sgl nvme.SGLDescriptor, have uint64, n uint32) nvme.Status {
	switch {
	case cmd.Flags&nvme.FlagPSDTMask != nvme.FlagSGL:
		return nvme.StatusInvalidField | nvme.StatusDNR
	case sgl.Address > have || uint64(sgl.Length) > have-sgl.Address:
		return nvme.StatusSGLOffsetInvalid | nvme.StatusDNR
	case sgl.Length != n || c.qid != 0 && cmd.Opcode != nvme.OpFabrics && n > c.out.icd:
		return nvme.StatusDataSGLLengthInvalid | nvme.StatusDNR
	}
	return 0
}
