package assets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// bzImage makes an image with the payload behind two setup sectors.
func bzImage(version uint16, payload []byte) []byte {
	const sects, gap = 2, 32
	img := make([]byte, (sects+1)*512+gap, (sects+1)*512+gap+len(payload)+10)
	img[offSetupSects] = sects
	copy(img[offMagic:], "HdrS")
	binary.LittleEndian.PutUint16(img[offVersion:], version)
	binary.LittleEndian.PutUint32(img[offPayloadOffset:], gap)
	binary.LittleEndian.PutUint32(img[offPayloadLength:], uint32(len(payload)))
	img = append(img, payload...)
	return append(img, "0123456789"...)
}

func TestPayload(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload string
		want    string
		command string
		size    uint32
	}{
		{"zstd", "\x28\xb5\x2f\xfdsome data\x01\x02\x03\x00", "\x28\xb5\x2f\xfdsome data", "zstd", 0x30201},
		{"xz", "\xfd7zXZ\x00more\xff\x00\x00\x00", "\xfd7zXZ\x00more", "xz", 255},
		{"gzip", "\x1f\x8bgzip data", "\x1f\x8bgzip data", "gzip", 0},
	} {
		data, cmd, size, err := payload(bzImage(0x20f, []byte(c.payload)))
		if err != nil || string(data) != c.want || len(cmd) == 0 || cmd[0] != c.command || size != c.size {
			t.Errorf("%s: got %q, %q, %d, %v", c.name, data, cmd, size, err)
		}
	}
}

func TestPayloadErrors(t *testing.T) {
	good := bzImage(0x20f, []byte("\x1f\x8bgzip data"))
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	for name, img := range map[string][]byte{
		"empty":           nil,
		"short":           good[:headerEnd-1],
		"no magic":        change(func(b []byte) { b[offMagic] = 'X' }),
		"old protocol":    bzImage(0x207, []byte("\x1f\x8bgzip data")),
		"unknown":         bzImage(0x20f, []byte("plain kernel")),
		"payload too far": change(func(b []byte) { binary.LittleEndian.PutUint32(b[offPayloadOffset:], 1<<32-1) }),
		"payload too big": change(func(b []byte) { binary.LittleEndian.PutUint32(b[offPayloadLength:], 1<<32-1) }),
		"payload tiny":    change(func(b []byte) { binary.LittleEndian.PutUint32(b[offPayloadLength:], 7) }),
	} {
		if _, _, _, err := payload(img); !errors.Is(err, ErrKernelImage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// No setup sectors stands for four.
	four := change(func(b []byte) { b[offSetupSects] = 0 })
	if _, _, _, err := payload(four); !errors.Is(err, ErrKernelImage) {
		t.Errorf("four sectors: got %v", err)
	}
}

func FuzzPayload(f *testing.F) {
	f.Add(bzImage(0x20f, []byte("\x28\xb5\x2f\xfdsome data\x01\x02\x03\x00")))
	f.Add(bzImage(0x20f, []byte("\x1f\x8bgzip data")))
	f.Fuzz(func(t *testing.T, img []byte) {
		data, cmd, _, err := payload(img)
		if err == nil && (len(cmd) == 0 || len(data) > len(img)) {
			t.Fatalf("%d of %d bytes by %q", len(data), len(img), cmd)
		}
	})
}
