package assets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrKernelImage is returned for a kernel image that is not a bzImage with a
// payload of a known kind.
var ErrKernelImage = errors.New("guest assets: bad kernel image")

// Offsets in the setup header, from Documentation/arch/x86/boot.rst.
const (
	offSetupSects    = 0x1f1
	offMagic         = 0x202
	offVersion       = 0x206
	offPayloadOffset = 0x248
	offPayloadLength = 0x24c
	headerEnd        = 0x250

	minVersion = 0x0208 // the first with a payload offset
)

// compressor is a way in which a kernel may be compressed. For those with size,
// the build appends the uncompressed size as four bytes.
type compressor struct {
	magic   []byte
	command []string
	size    bool
}

var compressors = []compressor{
	{[]byte{0x28, 0xb5, 0x2f, 0xfd}, []string{"zstd", "-dc"}, true},
	{[]byte{0xfd, '7', 'z', 'X', 'Z', 0}, []string{"xz", "-dc"}, true},
	{[]byte{0x1f, 0x8b}, []string{"gzip", "-dc"}, false},
}

// payload returns the compressed kernel inside a bzImage, the command that
// decompresses it, and its uncompressed size, 0 if that is not known.
func payload(img []byte) (data []byte, command []string, size uint32, err error) {
	if len(img) < headerEnd || string(img[offMagic:offMagic+4]) != "HdrS" {
		return nil, nil, 0, fmt.Errorf("%w: no setup header", ErrKernelImage)
	}
	if v := binary.LittleEndian.Uint16(img[offVersion:]); v < minVersion {
		return nil, nil, 0, fmt.Errorf("%w: boot protocol %#x", ErrKernelImage, v)
	}
	sects := int64(img[offSetupSects])
	if sects == 0 {
		sects = 4
	}
	start := (sects+1)*512 + int64(binary.LittleEndian.Uint32(img[offPayloadOffset:]))
	end := start + int64(binary.LittleEndian.Uint32(img[offPayloadLength:]))
	if end > int64(len(img)) || end-start < 8 {
		return nil, nil, 0, fmt.Errorf("%w: payload at %d to %d of %d bytes", ErrKernelImage, start, end, len(img))
	}
	data = img[start:end]
	for _, c := range compressors {
		if !bytes.HasPrefix(data, c.magic) {
			continue
		}
		if c.size {
			n := len(data) - 4
			data, size = data[:n], binary.LittleEndian.Uint32(data[n:])
		}
		return data, c.command, size, nil
	}
	return nil, nil, 0, fmt.Errorf("%w: payload starts with % x", ErrKernelImage, data[:8])
}
