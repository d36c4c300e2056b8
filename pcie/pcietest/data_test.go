package pcietest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

// lists builds PRP entries for n bytes that begin at an offset in a page: pages
// lie in reverse order, so that nothing is contiguous, and lists hold as many
// entries as room says, fewer than a page has.
func (d *driver) prps(n, offset int, listOffset int) (dptr [2]uint64, pieces [][]byte) {
	page := int(d.page)
	first := min(n, page-offset)
	count := (n - first + page - 1) / page
	base := d.alloc((count + 1) * page)
	at := func(i int) uint64 { return base + uint64((count-i)*page) }
	dptr[0] = at(0) + uint64(offset)
	pieces = append(pieces, d.at(dptr[0], first))
	left := n - first
	var entries []uint64
	for i := 1; i <= count; i++ {
		k := min(left, page)
		entries = append(entries, at(i))
		pieces = append(pieces, d.at(at(i), k))
		left -= k
	}
	switch {
	case len(entries) == 1:
		dptr[1] = entries[0]
	case len(entries) > 1:
		dptr[1] = d.list(entries, listOffset)
	}
	return dptr, pieces
}

// list writes a chain of PRP lists, the first of which begins at an offset.
func (d *driver) list(entries []uint64, offset int) uint64 {
	start := d.alloc(int(d.page)) + uint64(offset)
	at := start
	for {
		room := int(d.page-at&(d.page-1)) / 8
		if len(entries) <= room {
			for i, e := range entries {
				binary.LittleEndian.PutUint64(d.at(at+uint64(8*i), 8), e)
			}
			return start
		}
		for i, e := range entries[:room-1] {
			binary.LittleEndian.PutUint64(d.at(at+uint64(8*i), 8), e)
		}
		entries = entries[room-1:]
		next := d.alloc(int(d.page))
		binary.LittleEndian.PutUint64(d.at(at+uint64(8*(room-1)), 8), next)
		at = next
	}
}

// TestPRP writes and reads by PRPs of all shapes, every byte of which is
// verified.
func TestPRP(t *testing.T) {
	for _, c := range []struct{ n, offset, list int }{
		{512, 0, 0}, {512, 4, 0}, {512, 3584, 0}, {512, 4092, 0}, {4096, 0, 0}, {4096, 512, 0}, {8192, 0, 0}, {8192, 4, 0}, {8192, 4092, 8},
		{12288, 0, 0}, {12288, 0, 4080}, {12288, 1024, 4088}, {128 << 10, 0, 0}, {128 << 10, 512, 4000}, {1 << 20, 2048, 4088},
		{2 << 20, 0, 0}, {2 << 20, 0, 8}, {2 << 20, 4, 0}, {2 << 20, 4, 4088}, {2049 << 10, 512, 0},
	} {
		t.Run(fmt.Sprintf("%d at %d, list at %d", c.n, c.offset, c.list), func(t *testing.T) {
			d := newDriver(t, Config{MaxTransfer: 4 << 20}).enable()
			d.queue(1, 4)
			dptr, out := d.prps(c.n, c.offset, c.list)
			var want []byte
			for i, p := range out {
				fill(p, byte(i*5+1))
				want = append(want, p...)
			}
			w := rw(nvme.OpWrite, 1, 3, uint32(c.n/512), dptr[:]...)
			d.ok(1, w)
			dptr, in := d.prps(c.n, c.offset, c.list)
			r := rw(nvme.OpRead, 1, 3, uint32(c.n/512), dptr[:]...)
			d.ok(1, r)
			if got := bytes.Join(in, nil); !bytes.Equal(got, want) {
				t.Error("read something else than was written")
			}
			d.noFaults()
		})
	}
}

func TestPRPErrors(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 8)
	b := d.alloc(8 * 4096)
	bad := d.list([]uint64{b + 4096, b + 8192 + 512, b + 3*4096}, 0)
	end := d.list([]uint64{b + 4096, b + 8192}, 0)
	for _, c := range []struct {
		name   string
		blocks uint32
		prp    [2]uint64
		want   nvme.Status
		fault  bool
	}{
		{"PRP1 odd", 1, [2]uint64{b + 1, 0}, nvme.StatusPRPOffsetInvalid, false},
		{"PRP2 within a page", 16, [2]uint64{b, b + 4096 + 512}, nvme.StatusPRPOffsetInvalid, false},
		{"list odd", 32, [2]uint64{b, end + 4}, nvme.StatusPRPOffsetInvalid, false},
		{"entry within a page", 32, [2]uint64{b, bad}, nvme.StatusPRPOffsetInvalid, false},
		{"PRP1 unmapped", 1, [2]uint64{0x2000, 0}, nvme.StatusDataTransferError, true},
		{"PRP1 zero", 1, [2]uint64{0, 0}, nvme.StatusDataTransferError, true},
		{"PRP2 unmapped", 16, [2]uint64{b, 0x2000}, nvme.StatusDataTransferError, true},
		{"list unmapped", 24, [2]uint64{b, 0x2000}, nvme.StatusDataTransferError, true},
		{"entry zero", 40, [2]uint64{b, end}, nvme.StatusDataTransferError, true},
		{"across the end", 16, [2]uint64{arenaBase + arenaSize - 4096, arenaBase + arenaSize}, nvme.StatusDataTransferError, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t = t
			for _, op := range []nvme.Opcode{nvme.OpRead, nvme.OpWrite} {
				d.c.ClearFaults()
				d.fails(1, rw(op, 1, 0, c.blocks, c.prp[:]...), c.want)
				faults := d.c.Faults()
				if (len(faults) > 0) != c.fault {
					t.Errorf("faults %v", faults)
				}
				for _, f := range faults {
					if f.QID != 1 || f.CID != d.cid || f.String() == "" {
						t.Errorf("fault %+v, of command %#x", f, d.cid)
					}
				}
			}
		})
	}
	// An admin command checks the same.
	d.t = t
	d.fails(0, nvme.Command{Opcode: nvme.AdminIdentify, CDW10: 1, DPTR: [2]uint64{b + 2048, b + 4096 + 4}}, nvme.StatusPRPOffsetInvalid)
	d.fails(0, nvme.Command{Opcode: nvme.AdminIdentify, CDW10: 1, DPTR: [2]uint64{b, 0}, Flags: nvme.FlagSGL}, nvme.StatusInvalidField)
}

// TestReadOnlyMapping is DMA with bus mastering off, and after unmapping.
func TestRefusedDMA(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 8)
	b := d.alloc(4096)
	extra := pcie.Memory{Bytes: d.mem[:8192], FD: -1}
	d.must(d.dev.MapDMA(extra, 0x100000))
	d.ok(1, rw(nvme.OpRead, 1, 0, 16, 0x100000, 0x101000))
	d.must(d.dev.UnmapDMA(0x100000, 8192))
	d.fails(1, rw(nvme.OpRead, 1, 0, 1, 0x100000), nvme.StatusDataTransferError)
	if f := d.c.Faults(); len(f) != 1 || !f[0].Write || f[0].IOVA != 0x100000 || f[0].Length != 512 {
		t.Errorf("faults %v", f)
	}
	// Without bus mastering, the queues cannot be read: that is fatal.
	d.must(d.dev.SetBusMaster(false))
	d.put(1, rw(nvme.OpRead, 1, 0, 1, b))
	d.ring(1)
	d.step()
	if s := d.csts(); !s.CFS() {
		t.Errorf("CSTS is %v", s)
	}
	if f := d.c.Faults(); len(f) != 2 || f[1].What != useNames[useSQ] {
		t.Errorf("faults %v", f)
	}
	d.c.ClearFaults()
	d.must(d.dev.SetBusMaster(true))
	d.disable()
	d.enable()
	d.noFaults()
}

// sgl writes descriptors to memory.
func (d *driver) sgl(list ...nvme.SGLDescriptor) uint64 {
	at := d.alloc(16 * len(list))
	for i, e := range list {
		dptr := e.DPTR()
		b := d.at(at+uint64(16*i), 16)
		binary.LittleEndian.PutUint64(b, dptr[0])
		binary.LittleEndian.PutUint64(b[8:], dptr[1])
	}
	return at
}

func sglIO(op nvme.Opcode, blocks uint32, e nvme.SGLDescriptor) nvme.Command {
	cmd := rw(op, 1, 7, blocks)
	cmd.SetSGL(e)
	return cmd
}

func TestSGL(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 8)
	b := d.alloc(16384)
	fill(d.at(b, 16384), 9)
	out := bytes.Clone(d.at(b, 16384))
	block := nvme.SGLDataBlock
	// 4096 bytes: in one, in odd pieces, over segments.
	d.ok(1, sglIO(nvme.OpWrite, 8, block(b+3, 4096)))
	check := func(want []byte) {
		t.Helper()
		r := d.alloc(4096)
		d.ok(1, rw(nvme.OpRead, 1, 7, 8, r))
		if !bytes.Equal(d.at(r, 4096), want) {
			t.Error("the data is another")
		}
	}
	check(out[3 : 3+4096])
	last := d.sgl(block(b+8000, 1), block(0, 0), block(b+4096, 95))
	first := d.sgl(block(b, 1000), block(b+2000, 3000), nvme.SGLLastSegment(last, 48))
	d.ok(1, sglIO(nvme.OpWrite, 8, nvme.SGLSegment(first, 48)))
	want := append(append(append(bytes.Clone(out[:1000]), out[2000:5000]...), out[8000]), out[4096:4096+95]...)
	check(want)
	// A bit bucket takes a part of a read.
	r := d.alloc(4096)
	list := d.sgl(block(r, 1000), nvme.SGLBitBucket(3000), block(r+1000, 96))
	d.ok(1, sglIO(nvme.OpRead, 8, nvme.SGLLastSegment(list, 48)))
	if got := d.at(r, 1096); !bytes.Equal(got, append(bytes.Clone(want[:1000]), want[4000:]...)) {
		t.Error("the data around a bit bucket is another")
	}
	d.noFaults()
}

func TestSGLErrors(t *testing.T) {
	d := newDriver(t, Config{}).enable()
	d.queue(1, 8)
	b := d.alloc(16384)
	block := nvme.SGLDataBlock
	seg := func(list ...nvme.SGLDescriptor) nvme.SGLDescriptor {
		return nvme.SGLLastSegment(d.sgl(list...), uint32(16*len(list)))
	}
	circle := d.sgl(block(b, 0), nvme.SGLSegment(0, 0))
	copy(d.at(circle+16, 16), d.at(d.sgl(nvme.SGLSegment(circle, 32)), 16))
	keyed := block(b, 4096)
	keyed.ID = uint8(nvme.SGLTypeKeyedDataBlock) << 4
	offset := block(0, 4096)
	offset.ID |= uint8(nvme.SGLSubtypeOffset)
	for _, c := range []struct {
		name string
		sgl  nvme.SGLDescriptor
		want nvme.Status
	}{
		{"short", block(b, 4095), nvme.StatusDataSGLLengthInvalid},
		{"long", block(b, 4097), nvme.StatusDataSGLLengthInvalid},
		{"short in a segment", seg(block(b, 4000), block(b, 95)), nvme.StatusDataSGLLengthInvalid},
		{"long in a segment", seg(block(b, 4000), block(b, 97)), nvme.StatusDataSGLLengthInvalid},
		{"keyed", keyed, nvme.StatusSGLTypeInvalid},
		{"offset", offset, nvme.StatusSGLTypeInvalid},
		{"transport", nvme.SGLTransport(4096), nvme.StatusSGLTypeInvalid},
		{"keyed in a segment", seg(keyed), nvme.StatusSGLTypeInvalid},
		{"odd segment", nvme.SGLLastSegment(d.sgl(block(b, 4096)), 17), nvme.StatusInvalidSGLSegment},
		{"empty segment", nvme.SGLLastSegment(d.sgl(block(b, 4096)), 0), nvme.StatusInvalidSGLSegment},
		{"endless segment", nvme.SGLLastSegment(b, 0xfffffff0), nvme.StatusInvalidSGLSegment},
		{"segment after the last", seg(block(b, 1), seg(block(b, 4095))), nvme.StatusInvalidSGLSegment},
		{"segment amidst", nvme.SGLSegment(d.sgl(seg(block(b, 1)), block(b, 4095)), 32), nvme.StatusInvalidSGLSegment},
		{"no next segment", nvme.SGLSegment(d.sgl(block(b, 4096)), 16), nvme.StatusInvalidSGLSegment},
		{"circle", nvme.SGLSegment(circle, 32), nvme.StatusInvalidSGLCount},
		{"segment unmapped", nvme.SGLLastSegment(0x5000, 16), nvme.StatusDataTransferError},
		{"data unmapped", block(0x5000, 4096), nvme.StatusDataTransferError},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t = t
			d.fails(1, sglIO(nvme.OpRead, 8, c.sgl), c.want)
			d.fails(1, sglIO(nvme.OpWrite, 8, c.sgl), c.want)
		})
	}
	cmd := sglIO(nvme.OpRead, 8, block(b, 4096))
	cmd.Flags |= nvme.FlagSGLMeta
	d.t = t
	d.fails(1, cmd, nvme.StatusInvalidField)
	plain := newDriver(t, Config{NoSGL: true}).enable()
	plain.queue(1, 8)
	plain.fails(1, sglIO(nvme.OpRead, 8, block(b, 4096)), nvme.StatusInvalidField)
}

// TestCMB has queues, lists and data in the controller memory buffer.
func TestCMB(t *testing.T) {
	both(t, Config{CMB: CMBConfig{Size: 1 << 20}}, func(t *testing.T, d *driver) {
		const base = 0x7000_0000_0000
		if v, _ := d.dev.Read32(nvme.RegCMBSZ); v != 0 {
			t.Errorf("CMBSZ is %#x before it was asked for", v)
		}
		d.must(d.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(base, true, true))))
		loc, err := d.dev.Read32(nvme.RegCMBLOC)
		d.must(err)
		sz, err := d.dev.Read32(nvme.RegCMBSZ)
		d.must(err)
		off, n, ok := nvme.CMBSZ(sz).Range(nvme.CMBLOC(loc))
		if off != 0 || n != 1<<20 || !ok || nvme.CMBLOC(loc).BIR() != cmbBAR || !nvme.CMBSZ(sz).SQS() || !nvme.CMBSZ(sz).RDS() {
			t.Fatalf("CMBLOC %#x, CMBSZ %#x", loc, sz)
		}
		w, err := d.dev.Map(int(nvme.CMBLOC(loc).BIR()), 0, n)
		d.must(err)
		d.enable()
		cq := d.alloc(64 * 16)
		d.ok(0, nvme.CreateCQCommand{QID: 1, Size: 63, Address: cq, Contiguous: true}.Command())
		d.ok(0, nvme.CreateSQCommand{QID: 1, Size: 63, Address: base + 4096, Contiguous: true, CQID: 1}.Command())
		d.cqs[1] = &ring{base: cq, size: 64, phase: 1}
		// A write of data in the buffer, by a list in the buffer.
		cmd := rw(nvme.OpWrite, 1, 0, 24, base+8192, base+0x10000)
		d.must(w.Write64(0x10000, base+0x3000))
		d.must(w.Write64(0x10008, base+0x4000))
		for i := uint64(0x2000); i < 0x5000; i += 8 {
			d.must(w.Write64(i, i*0x9e3779b97f4a7c15))
		}
		cmd.CID = 77
		for i := range uint64(8) {
			d.must(w.Write64(4096+8*i, binary.LittleEndian.Uint64(commandBytes(&cmd)[8*i:])))
		}
		d.must(d.db.Write32(8, 1))
		if cpl := d.wait(1); cpl.Status() != 0 || cpl.CID != 77 {
			t.Fatalf("%+v: %v", cpl, d.c.Faults())
		}
		d.queue(2, 4)
		b := d.alloc(3 * 4096)
		d.ok(2, rw(nvme.OpRead, 1, 0, 24, b, d.list([]uint64{b + 4096, b + 8192}, 0)))
		for i := uint64(0); i < 0x3000; i += 8 {
			if got := binary.LittleEndian.Uint64(d.at(b+i, 8)); got != (i+0x2000)*0x9e3779b97f4a7c15 {
				t.Fatalf("at %d: %#x", i, got)
			}
		}
		d.noFaults()
	})
}

func TestCMBErrors(t *testing.T) {
	const base = 0x7000_0000_0000
	d := newDriver(t, Config{CMB: CMBConfig{Size: 64 << 10, NoSQ: true, NoCQ: true, NoLists: true, NoReads: true, NoWrites: true}})
	d.must(d.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(1<<64-8192, true, true))))
	if v, _ := d.dev.Read32(nvme.RegCMBSTS); v != 1 {
		t.Errorf("CMBSTS is %#x for addresses that wrap", v)
	}
	d.must(d.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(base, true, true))))
	if v, _ := d.dev.Read32(nvme.RegCMBSZ); v&0x1f != 0 {
		t.Errorf("CMBSZ is %#x", v)
	}
	d.enable().queue(1, 8)
	d.fails(0, nvme.CreateCQCommand{QID: 2, Size: 3, Address: base, Contiguous: true}.Command(), nvme.StatusInvalidUseOfCMB)
	d.fails(0, nvme.CreateSQCommand{QID: 2, Size: 3, Address: base, Contiguous: true, CQID: 1}.Command(), nvme.StatusInvalidUseOfCMB)
	d.fails(1, rw(nvme.OpRead, 1, 0, 1, base), nvme.StatusInvalidUseOfCMB)
	d.fails(1, rw(nvme.OpWrite, 1, 0, 1, base), nvme.StatusInvalidUseOfCMB)
	d.fails(1, rw(nvme.OpRead, 1, 0, 24, d.alloc(4096), base), nvme.StatusInvalidUseOfCMB)
	big := newDriver(t, Config{CMB: CMBConfig{Size: 8192}})
	big.must(big.dev.Write64(nvme.RegCMBMSC, uint64(nvme.MakeCMBMSC(base, true, true))))
	big.enable()
	big.fails(0, nvme.CreateCQCommand{QID: 1, Size: 1023, Address: base, Contiguous: true}.Command(), nvme.StatusInvalidUseOfCMB)
	// Off, its addresses are nobody's.
	big.must(big.dev.Write64(nvme.RegCMBMSC, 0))
	big.queue(1, 8)
	big.fails(1, rw(nvme.OpRead, 1, 0, 1, base), nvme.StatusDataTransferError)
}

// TestCopyAndDeallocate moves blocks within a namespace.
func TestCopyAndDeallocate(t *testing.T) {
	d := newDriver(t, Config{Namespaces: []NamespaceConfig{{Size: 1 << 20}, {Size: 1 << 20, ReadOnly: true}}}).enable()
	d.queue(1, 8)
	w, r, p := d.alloc(4096), d.alloc(4096), d.alloc(4096)
	fill(d.at(w, 4096), 77)
	d.ok(1, rw(nvme.OpWrite, 1, 0, 8, w))
	ranges, err := nvme.AppendCopyRanges(nil, []nvme.CopyRange{{SLBA: 6, NLB: 1}, {SLBA: 0, NLB: 0}})
	d.must(err)
	copy(d.at(p, 4096), ranges)
	cp, err := nvme.CopyCommand{NSID: 1, SDLBA: 7, Ranges: 2}.Command()
	d.must(err)
	cp.DPTR[0] = p
	d.ok(1, cp)
	d.ok(1, rw(nvme.OpRead, 1, 7, 3, r))
	if !bytes.Equal(d.at(r, 1536), append(bytes.Clone(d.at(w+3072, 1024)), d.at(w, 512)...)) {
		t.Error("the copy is another")
	}
	copy(d.at(p, 4096), nvme.AppendDSMRanges(nil, []nvme.DSMRange{{LBA: 7, Length: 1}, {LBA: 9, Length: 0}, {LBA: 2048, Length: 0}}))
	dsm, err := nvme.DSMCommand{NSID: 1, Ranges: 3, Deallocate: true}.Command()
	d.must(err)
	dsm.DPTR[0] = p
	d.ok(1, dsm)
	d.ok(1, rw(nvme.OpRead, 1, 7, 1, r))
	if !bytes.Equal(d.at(r, 512), make([]byte, 512)) {
		t.Error("what was deallocated does not read as zeros")
	}
	dsm.NSID, cp.NSID = 2, 2
	d.fails(1, dsm, nvme.StatusNamespaceWriteProtected)
	d.fails(1, cp, nvme.StatusNamespaceWriteProtected)
	dsm.NSID, cp.NSID = 1, 1
	cp.CDW10 = 2047
	copy(d.at(p, 4096), ranges)
	d.fails(1, cp, nvme.StatusLBAOutOfRange)
	cp.CDW12 |= 1 << 8
	d.fails(1, cp, nvme.StatusInvalidField)
	cp.CDW12 = 200
	d.fails(1, cp, nvme.StatusCommandSizeLimitExceeded)
	copy(d.at(p, 4096), nvme.AppendDSMRanges(nil, []nvme.DSMRange{{LBA: 2047, Length: 2}}))
	dsm.CDW10 = 0
	d.fails(1, dsm, nvme.StatusLBAOutOfRange)
	d.noFaults()
}
