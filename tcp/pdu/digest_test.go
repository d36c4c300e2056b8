package pdu

import (
	"bytes"
	"errors"
	"testing"
)

// referenceCRC32C is the definition: the reflected Castagnoli polynomial, one
// bit at a time.
func referenceCRC32C(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0x82f63b78
			} else {
				crc >>= 1
			}
		}
	}
	return ^crc
}

func sequence(n, first, step int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(first + i*step)
	}
	return b
}

// The wire bytes of the first five are those of RFC 7143, appendix A.4 (RFC
// 3720, B.4). The check value of "123456789" is that of the CRC catalogues.
var digestVectors = []struct {
	name string
	data []byte
	wire [4]byte
}{
	{"32 zeros", make([]byte, 32), [4]byte{0xaa, 0x36, 0x91, 0x8a}},
	{"32 ones", bytes.Repeat([]byte{0xff}, 32), [4]byte{0x43, 0xab, 0xa8, 0x62}},
	{"32 incrementing", sequence(32, 0, 1), [4]byte{0x4e, 0x79, 0xdd, 0x46}},
	{"32 decrementing", sequence(32, 31, -1), [4]byte{0x5c, 0xdb, 0x3f, 0x11}},
	{"iSCSI read command", []byte{
		0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
		0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
	}, [4]byte{0x56, 0x3a, 0x96, 0xd9}},
	{"check", []byte("123456789"), [4]byte{0x83, 0x92, 0x06, 0xe3}},
	{"empty", nil, [4]byte{}},
	// NVM Command Set Specification, CRC32C test cases for 4 KiB.
	{"4 KiB of zeros", make([]byte, 4096), [4]byte{0x89, 0x41, 0xf9, 0x98}},
	{"4 KiB of ones", bytes.Repeat([]byte{0xff}, 4096), [4]byte{0x13, 0xfe, 0xc1, 0x25}},
	{"4 KiB incrementing", sequence(4096, 0, 1), [4]byte{0x32, 0xfe, 0x71, 0x9c}},
}

func TestGoldenDigests(t *testing.T) {
	for _, v := range digestVectors {
		var wire [4]byte
		PutDigest(wire[:], Digest(v.data))
		if wire != v.wire {
			t.Errorf("%s: digest % x, want % x", v.name, wire, v.wire)
		}
		if got := GetDigest(v.wire[:]); got != referenceCRC32C(v.data) {
			t.Errorf("%s: read %#x, reference %#x", v.name, got, referenceCRC32C(v.data))
		}
	}
}

func TestUpdateDigest(t *testing.T) {
	data := sequence(9000, 3, 7)
	want := referenceCRC32C(data)
	for _, step := range []int{1, 3, 8, 511, 512, 4096, 9000} {
		d := uint32(0)
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			d = UpdateDigest(d, rest[:n])
			rest = rest[n:]
		}
		if d != want {
			t.Errorf("pieces of %d: %#x, want %#x", step, d, want)
		}
	}
}

func TestVerifyHeader(t *testing.T) {
	l := digests.Layout(TypeR2T)
	b := AppendR2T(nil, &l, R2TFields{1, 2, 0, 4096})
	if err := VerifyHeader(b, R2TSize); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		var e *Error
		if err := VerifyHeader(bad, R2TSize); !errors.As(err, &e) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if e.FES != FESHeaderDigestError || e.FEI != GetDigest(bad[R2TSize:]) {
			t.Errorf("byte %d changed: FES %v FEI %#x", i, e.FES, e.FEI)
		}
	}
}
