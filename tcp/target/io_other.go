package target

import (
	"encoding/binary"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// badTransport tells what is wrong with the data pointer or the length.
func (c *conn) badTransport(cmd *nvme.Command, length int64) nvme.Status {
	sgl := cmd.SGL()
	s := nvme.StatusSGLTypeInvalid
	switch {
	case cmd.Flags&nvme.FlagPSDTMask != nvme.FlagSGL, length > int64(c.out.maxTransfer):
		s = nvme.StatusInvalidField
	case sgl.Is(nvme.SGLTypeTransportDataBlock, nvme.SGLSubtypeTransport):
		s = nvme.StatusDataSGLLengthInvalid
	}
	return s | nvme.StatusDNR
}

// otherCommand executes the commands of an I/O queue that are not Read or
// Write.
func (c *conn) otherCommand(r *request, data []byte) {
	switch r.cmd.Opcode {
	case nvme.OpFlush:
		c.flushCommand(r)
	case nvme.OpCompare:
		c.write(r, data, backend.Compare)
	case nvme.OpWriteZeroes:
		c.noData(r, backend.WriteZeroes)
	case nvme.OpVerify:
		c.noData(r, backend.Verify)
	case nvme.OpDatasetManagement:
		c.datasetManagement(r, data)
	default:
		c.fail(r, nvme.StatusInvalidOpcode|nvme.StatusDNR)
	}
}

// noData executes a command on a range of blocks that transfers nothing.
func (c *conn) noData(r *request, kind backend.Kind) {
	e, s := c.locate(r)
	if s == 0 && kind == backend.WriteZeroes {
		s = e.writable
	}
	if s != 0 {
		c.fail(r, s)
		return
	}
	c.stats.others++
	r.op.Kind = kind
	r.op.FUA = r.cmd.CDW12&cdw12FUA != 0
	c.bind(r, e)
	c.submit(r)
}

// flushCommand executes a Flush, of one namespace or, with the broadcast NSID,
// of all: one after the other.
func (c *conn) flushCommand(r *request) {
	nsid := r.cmd.NSID
	c.stats.others++
	if nsid == nvme.NSIDAll {
		r.steps = true
		c.flushNext(r, 0)
		return
	}
	e := c.view.find(nsid)
	switch {
	case e == nil:
		c.fail(r, nvme.StatusInvalidNamespace|nvme.StatusDNR)
	case e.barred != 0:
		c.fail(r, e.barred)
	default:
		c.flushOne(r, e)
	}
}

func (c *conn) flushOne(r *request, e *entry) {
	r.op.Kind = backend.Flush
	r.op.Offset, r.op.Length = 0, 0
	c.bind(r, e)
	c.submit(r)
}

// flushNext flushes the first accessible namespace after one, or ends the
// command.
func (c *conn) flushNext(r *request, after uint32) {
	e := c.view.next(after)
	for e != nil && e.barred != 0 {
		e = c.view.next(e.nsid)
	}
	if e == nil {
		c.respond(r)
		return
	}
	r.cmd.CDW10 = e.nsid // where the walk is
	c.flushOne(r, e)
}

// Dataset Management: the ranges are 16 bytes each.
const (
	rangeSize     = 16
	cdw11Dealloc  = 1 << 2
	maxDSMRanges  = 256
	dsmRangesMask = maxDSMRanges - 1
)

// datasetManagement executes a Dataset Management, of which only Deallocate
// does anything.
func (c *conn) datasetManagement(r *request, data []byte) {
	e := c.view.find(r.cmd.NSID)
	s := nvme.Status(0)
	switch {
	case e == nil:
		s = nvme.StatusInvalidNamespace | nvme.StatusDNR
	case e.barred != 0:
		s = e.barred
	case r.cmd.CDW11&cdw11Dealloc != 0:
		s = e.writable
	}
	if s != 0 {
		c.fail(r, s)
		return
	}
	c.stats.others++
	c.bind(r, e)
	r.op.Kind = backend.Deallocate
	// Some hosts, Linux among them, always send as much as the longest list
	// would take.
	n := r.rangeBytes()
	if have := r.cmd.SGL().Length; have > n && have <= maxDSMRanges*rangeSize {
		n = have
	}
	c.takeData(r, data, n)
}

// rangeBytes returns the length of the ranges that a Dataset Management has.
func (r *request) rangeBytes() uint32 { return (r.cmd.CDW10&dsmRangesMask + 1) * rangeSize }

// deallocate checks all ranges, then begins with the first.
func (c *conn) deallocate(r *request) {
	r.op.Data = r.op.Data[:r.rangeBytes()]
	e := c.view.find(r.cmd.NSID)
	if e == nil || e.ch != r.ns { // gone while the data was on its way
		c.fail(r, nvme.StatusInvalidNamespace|nvme.StatusDNR)
		return
	}
	for i := 0; i < len(r.op.Data); i += rangeSize {
		lba, n := dsmRange(r.op.Data[i:])
		if lba > e.blocks || n > e.blocks-lba {
			c.fail(r, nvme.StatusLBAOutOfRange|nvme.StatusDNR)
			return
		}
	}
	if r.cmd.CDW11&cdw11Dealloc == 0 {
		c.respond(r)
		return
	}
	// The ranges are needed until the last one is done.
	if r.buf == nil {
		c.keep(r)
	}
	r.cmd.CDW12 = uint32(e.shift)
	r.steps = true
	if !c.nextRange(r) {
		c.respond(r)
	}
}

// nextStep goes on with a request of several operations, or returns false if it
// was the last one.
func (c *conn) nextStep(r *request) bool {
	switch {
	case r.cmd.Flags&nvme.FlagFuseMask != 0:
		c.fusedExecuted(r)
		return true
	case r.cmd.Opcode == nvme.OpFlush:
		c.unbind(r)
		c.flushNext(r, r.cmd.CDW10)
		return true
	}
	return c.nextRange(r)
}

// nextRange deallocates the next range, or returns false at the end.
func (c *conn) nextRange(r *request) bool {
	ranges := r.buf.b[:r.rangeBytes()]
	for at := int(r.ranges) * rangeSize; at < len(ranges); at += rangeSize {
		r.ranges++
		lba, n := dsmRange(ranges[at:])
		if n == 0 {
			continue
		}
		r.op.Offset, r.op.Length = int64(lba<<r.cmd.CDW12), int64(n<<r.cmd.CDW12)
		c.submit(r)
		return true
	}
	return false
}

func dsmRange(b []byte) (lba, blocks uint64) {
	return binary.LittleEndian.Uint64(b[8:]), uint64(binary.LittleEndian.Uint32(b[4:]))
}
