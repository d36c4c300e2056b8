package target_test

import (
	"bytes"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

const dnr = nvme.StatusDNR

// TestIORefused has one thing wrong with an I/O command at a time.
func TestIORefused(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20)) // 2048 blocks
	cfg.Subsystems[0].MaxTransfer = 64 << 10
	cfg.Subsystems[0].Namespaces = append(cfg.Subsystems[0].Namespaces,
		target.NamespaceConfig{NSID: 2, Backend: backend.NewHeap(1 << 20), ReadOnly: true})
	_, q := newLab(t, cfg).io(connectOptions{}, pdu.ICReqFields{})
	on := func(nsid uint32, c nvme.Command) nvme.Command { c.NSID = nsid; return c }
	sgl := func(d nvme.SGLDescriptor, c nvme.Command) nvme.Command { c.SetSGL(d); return c }
	transport := func(n uint32, c nvme.Command) nvme.Command { return sgl(nvme.SGLTransport(n), c) }
	capsule := func(n uint32, c nvme.Command) nvme.Command { return sgl(nvme.SGLInCapsule(0, n), c) }
	flags := func(f uint8, c nvme.Command) nvme.Command { c.Flags = f; return c }
	block := make([]byte, 512)
	for _, c := range []struct {
		name string
		cmd  nvme.Command
		data []byte
		want nvme.Status
	}{
		{"namespace 0", on(0, transport(512, read(0, 1))), nil, nvme.StatusInvalidNamespace | dnr},
		{"no such namespace", on(3, transport(512, read(0, 1))), nil, nvme.StatusInvalidNamespace | dnr},
		{"far namespace", on(5000, transport(512, read(0, 1))), nil, nvme.StatusInvalidNamespace | dnr},
		{"broadcast", on(nvme.NSIDAll, transport(512, read(0, 1))), nil, nvme.StatusInvalidNamespace | dnr},
		{"read beyond the end", transport(1024, read(2047, 2)), nil, nvme.StatusLBAOutOfRange | dnr},
		{"read from the end on", transport(512, read(2048, 1)), nil, nvme.StatusLBAOutOfRange | dnr},
		{"read far beyond", transport(512, read(1<<63, 1)), nil, nvme.StatusLBAOutOfRange | dnr},
		{"write beyond the end", capsule(512, write(2048, 1)), block, nvme.StatusLBAOutOfRange | dnr},
		{"zeroes beyond the end", rw(nvme.OpWriteZeroes, 2000, 49), nil, nvme.StatusLBAOutOfRange | dnr},
		{"verify beyond the end", rw(nvme.OpVerify, 2048, 1), nil, nvme.StatusLBAOutOfRange | dnr},
		{"read too long", transport(128<<10, read(0, 256)), nil, nvme.StatusInvalidField | dnr},
		{"write too long", transport(128<<10, write(0, 256)), nil, nvme.StatusInvalidField | dnr},
		{"read of another length", transport(1024, read(0, 1)), nil, nvme.StatusDataSGLLengthInvalid | dnr},
		{"write of another length", transport(512, write(0, 2)), nil, nvme.StatusDataSGLLengthInvalid | dnr},
		{"capsule of another length", capsule(512, write(0, 2)), block, nvme.StatusDataSGLLengthInvalid | dnr},
		{"SGL longer than the capsule", capsule(1024, write(0, 2)), block, nvme.StatusSGLOffsetInvalid | dnr},
		{"no capsule data", capsule(512, write(0, 1)), nil, nvme.StatusSGLOffsetInvalid | dnr},
		{"PRP", flags(0, read(0, 1)), nil, nvme.StatusInvalidField | dnr},
		{"keyed SGL", sgl(nvme.SGLDescriptor{Length: 512, ID: 0x40}, read(0, 1)), nil, nvme.StatusSGLTypeInvalid | dnr},
		{"read into the capsule", capsule(512, read(0, 1)), nil, nvme.StatusSGLTypeInvalid | dnr},
		{"unknown opcode", rw(0x7e, 0, 1), nil, nvme.StatusInvalidOpcode | dnr},
		{"write to a read-only namespace", on(2, capsule(512, write(0, 1))), block, nvme.StatusNamespaceWriteProtected | dnr},
		{"zeroes to a read-only namespace", on(2, rw(nvme.OpWriteZeroes, 0, 1)), nil, nvme.StatusNamespaceWriteProtected | dnr},
		{"flush of no namespace", on(9, rw(nvme.OpFlush, 0, 1)), nil, nvme.StatusInvalidNamespace | dnr},
		{"property on an I/O queue", nvme.NewPropertyGet(nvme.RegVS).Command(), nil, nvme.StatusInvalidOpcode | dnr},
	} {
		t.Run(c.name, func(t *testing.T) {
			q.t = t
			cmd := c.cmd
			q.send(q.capsule(&cmd, c.data))
			q.is(q.completion(), c.want)
		})
	}
	q.t = t
	_, cpl := q.in(read(2047, 1), 512)
	q.ok(cpl)
	if st := q.l.subsystem().Stats(); st.Queues != 1 || st.Controllers != 1 {
		t.Errorf("stats %+v", st)
	}
}

// TestCapsuleLimit sends more in-capsule data than IOCCSZ allows, though less
// than what any capsule may carry.
func TestCapsuleLimit(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Transport.InCapsule = 1024
	_, q := newLab(t, cfg).io(connectOptions{}, pdu.ICReqFields{})
	q.ok(q.do(write(0, 2), make([]byte, 1024)))
	q.is(q.do(write(0, 3), make([]byte, 1536)), nvme.StatusDataSGLLengthInvalid|dnr)
}

// TestCapsuleOffset takes data from the middle of what the capsule carries.
func TestCapsuleOffset(t *testing.T) {
	_, q := newLab(t, oneNamespace(backend.NewHeap(1<<20))).io(connectOptions{}, pdu.ICReqFields{})
	data := pattern(1, 2048)
	cmd := write(7, 2)
	cmd.SetSGL(nvme.SGLInCapsule(512, 1024))
	q.send(q.capsule(&cmd, data))
	q.ok(q.completion())
	got, _ := q.in(read(7, 2), 1024)
	same(t, "data", got, data[512:1536])
}

// TestOtherCommands executes what is neither Read nor Write.
func TestOtherCommands(t *testing.T) {
	cfg := oneNamespace(backend.NewHeap(1 << 20))
	cfg.Subsystems[0].Namespaces[0].BlockSize = 4096
	_, q := newLab(t, cfg).io(connectOptions{}, pdu.ICReqFields{})
	data := pattern(3, 8192)
	q.ok(q.do(write(4, 2), data))
	check := func(what string, lba uint64, want []byte) {
		t.Helper()
		got, cpl := q.in(read(lba, uint32(len(want)/4096)), len(want))
		q.ok(cpl)
		same(t, what, got, want)
	}
	q.ok(q.do(rw(nvme.OpFlush, 0, 1), nil))
	flushAll := rw(nvme.OpFlush, 0, 1)
	flushAll.NSID = nvme.NSIDAll
	q.ok(q.do(flushAll, nil))
	q.ok(q.do(rw(nvme.OpVerify, 0, 8), nil))
	q.ok(q.do(rw(nvme.OpCompare, 4, 2), data))
	q.ok(q.out(rw(nvme.OpCompare, 4, 2), data))
	q.is(q.do(rw(nvme.OpCompare, 3, 2), data), nvme.StatusCompareFailure)
	q.ok(q.do(rw(nvme.OpWriteZeroes, 5, 1), nil))
	check("zeroes", 4, append(append([]byte(nil), data[:4096]...), make([]byte, 4096)...))

	q.ok(q.do(write(10, 2), data))
	dsm, err := nvme.DSMCommand{NSID: 1, Ranges: 3, Deallocate: true}.Command()
	must(t, err)
	ranges := nvme.AppendDSMRanges(nil, []nvme.DSMRange{{LBA: 4, Length: 1}, {LBA: 200, Length: 0}, {LBA: 11, Length: 1}})
	q.ok(q.do(dsm, ranges))
	check("deallocated", 4, make([]byte, 4096))
	check("not deallocated", 10, data[:4096])
	check("deallocated last", 11, make([]byte, 4096))
	q.ok(q.out(dsm, ranges))

	ranges = nvme.AppendDSMRanges(nil, []nvme.DSMRange{{LBA: 10, Length: 1}, {LBA: 255, Length: 2}, {}})
	q.is(q.do(dsm, ranges), nvme.StatusLBAOutOfRange|dnr)
	check("nothing deallocated", 10, data[:4096])
	hint, err := nvme.DSMCommand{NSID: 1, Ranges: 1, IntegralRead: true}.Command()
	must(t, err)
	q.ok(q.do(hint, ranges[:16]))
	check("hint", 10, data[:4096])
	q.is(q.do(hint, ranges[:8]), nvme.StatusDataSGLLengthInvalid|dnr)
	q.is(q.do(hint, make([]byte, 4112)), nvme.StatusDataSGLLengthInvalid|dnr)
	// What follows the ranges is not looked at: Linux sends 4096 bytes always.
	padded := bytes.Repeat([]byte{0xff}, 4096)
	copy(padded, nvme.AppendDSMRanges(nil, []nvme.DSMRange{{LBA: 10, Length: 1}}))
	one, err := nvme.DSMCommand{NSID: 1, Ranges: 1, Deallocate: true}.Command()
	must(t, err)
	q.ok(q.do(one, padded))
	check("deallocated with a padded list", 10, make([]byte, 4096))
	q.ok(q.do(write(10, 1), data[:4096]))
	q.ok(q.out(one, padded))
	check("deallocated with a padded list in the transfer", 10, make([]byte, 4096))
}

// TestDataDigestError damages data in all the ways in which it can travel.
func TestDataDigestError(t *testing.T) {
	_, q := newLab(t, oneNamespace(backend.NewHeap(1<<20))).io(connectOptions{}, pdu.ICReqFields{DDGST: true})
	q.ok(q.do(write(0, 8), pattern(1, 4096)))
	damaged := func(b []byte) []byte { b[len(b)-10] ^= 1; return b }
	cmd := write(0, 8)
	cmd.SetSGL(nvme.SGLInCapsule(0, 4096))
	q.send(damaged(q.capsule(&cmd, make([]byte, 4096))))
	q.is(q.completion(), nvme.StatusTransientTransportError)

	b := damaged(q.capsule(&cmd, make([]byte, 4096)))
	q.send(b[:2000])
	q.l.step()
	q.send(b[2000:])
	q.is(q.completion(), nvme.StatusTransientTransportError)

	q.post(write(0, 8), nil, 4096)
	r := *(*pdu.R2T)(q.nextOf(pdu.TypeR2T).Header)
	q.send(damaged(q.h2c(0, r.CCCID(), r.TTAG(), 0, make([]byte, 1024))))
	q.send(q.h2c(pdu.LastPDU, r.CCCID(), r.TTAG(), 1024, make([]byte, 3072)))
	q.is(q.completion(), nvme.StatusTransientTransportError)

	got, cpl := q.in(read(0, 8), 4096)
	q.ok(cpl)
	same(t, "nothing was written", got, pattern(1, 4096))
}
