package nvme

import (
	"encoding/binary"
	"reflect"
	"testing"
)

func exampleANALog() *ANALog {
	return &ANALog{ChangeCount: 0x0102030405060708, Groups: []ANAGroup{
		{ID: 1, ChangeCount: 5, State: ANAOptimized, NSIDs: []uint32{1, 0x00020003}},
		{ID: 2, State: ANAInaccessible},
		{ID: 0x01000000, State: ANAChange, NSIDs: []uint32{7}},
	}}
}

// Layout: Base Specification 2.1 figures 223 and 224; libnvme struct
// nvme_ana_log and struct nvme_ana_group_desc agree.
func exampleANABytes(t testing.TB) []byte {
	return hexBytes(t, `0807060504030201 0300 000000000000
		01000000 02000000 0500000000000000 01 000000000000000000000000000000 01000000 03000200
		02000000 00000000 0000000000000000 03 000000000000000000000000000000
		00000001 01000000 0000000000000000 0f 000000000000000000000000000000 07000000`)
}

func TestANALogGolden(t *testing.T) {
	want, golden := exampleANALog(), exampleANABytes(t)
	b, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantImage(t, b, golden)
	var got ANALog
	if err := got.UnmarshalBinary(append(golden, 0xff, 0xff)); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	var empty ANALog
	if err := empty.UnmarshalBinary(make([]byte, 16)); err != nil || len(empty.Groups) != 0 {
		t.Errorf("%+v, %v", empty, err)
	}
	if ANALogSize(2, 3) != 16+64+12 || ANALogSize(0xffffffff, 0xffffffff) != 16+36*0xffffffff {
		t.Error("size of the log")
	}
}

// The page arrives in pieces of every size; what is left over is ignored.
func TestANADecoderPieces(t *testing.T) {
	golden := exampleANABytes(t)
	for size := 1; size <= len(golden)+1; size++ {
		d := NewANADecoder(3, 3)
		for at := 0; at < len(golden); at += size {
			if d.Complete() {
				t.Fatalf("pieces of %d: complete at %d", size, at)
			}
			piece := golden[at:min(at+size, len(golden))]
			if n, err := d.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("pieces of %d: %d, %v", size, n, err)
			}
		}
		if n, err := d.Write([]byte("rest")); n != 4 || err != nil {
			t.Errorf("after the end: %d, %v", n, err)
		}
		log, err := d.Log()
		if err != nil || !reflect.DeepEqual(log, exampleANALog()) {
			t.Errorf("pieces of %d: %+v, %v", size, log, err)
		}
		if n, ok := d.ChangeCount(); n != 0x0102030405060708 || !ok {
			t.Errorf("change count %#x, %v", n, ok)
		}
	}
}

func TestANADecoderTruncated(t *testing.T) {
	golden := exampleANABytes(t)
	for n := range len(golden) {
		var log ANALog
		wantDecodeError(t, log.UnmarshalBinary(golden[:n]), "ANA log")
		d := NewANADecoder(0, 0)
		if _, err := d.Write(golden[:n]); err != nil || d.Complete() {
			t.Errorf("first %d bytes: %v, complete %v", n, err, d.Complete())
		}
		_, ok := d.ChangeCount()
		if ok != (n >= 16) {
			t.Errorf("first %d bytes: change count %v", n, ok)
		}
	}
}

func TestANADecoderHostile(t *testing.T) {
	patch := func(offset int, v uint32) []byte {
		b := exampleANABytes(t)
		binary.LittleEndian.PutUint32(b[offset:], v)
		return b
	}
	for _, c := range []struct {
		name  string
		bytes []byte
	}{
		{"more groups than there may be", patch(8, 4)},
		{"group zero", patch(16, 0)},
		{"group told twice", patch(56, 1)},
		{"2^32-1 namespaces", patch(20, 0xffffffff)},
		{"more namespaces than there may be", patch(60, 2)},
		{"state 0", patch(32, 0)},
		{"state 5", patch(32, 5)},
		{"namespace 0", patch(48, 0)},
		{"broadcast namespace", patch(48, NSIDAll)},
	} {
		d := NewANADecoder(3, 3)
		n, err := d.Write(c.bytes)
		if n != 0 || err == nil {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
		wantDecodeError(t, err, "ANA log")
		if _, again := d.Write(exampleANABytes(t)); again != err {
			t.Errorf("%s: the error is not final", c.name)
		}
		if _, again := d.Log(); again != err {
			t.Errorf("%s: Log gives %v", c.name, again)
		}
	}
	// Without limits of the controller, the decoder's own hold.
	d := NewANADecoder(0, 0xffffffff)
	_, err := d.Write(patch(20, 1<<20+1))
	wantDecodeError(t, err, "at most 1048576")
}

func TestANAStates(t *testing.T) {
	for s, want := range map[ANAState]string{
		1: "optimized", 2: "non-optimized", 3: "inaccessible", 4: "persistent-loss", 15: "change", 0: "reserved ANA state 0x0", 7: "reserved ANA state 0x7",
	} {
		if s.String() != want || s.Valid() != (s == 1 || s == 2 || s == 3 || s == 4 || s == 15) || s.Accessible() != (s == 1 || s == 2) {
			t.Errorf("%d: %q, valid %v, accessible %v", s, s, s.Valid(), s.Accessible())
		}
	}
	_, err := (&ANALog{Groups: make([]ANAGroup, 1<<16)}).AppendBinary(nil)
	wantRangeError(t, err)
}
