package nvme

import "encoding/binary"

// cursor reads a structure of variable size. The first read past the end sets
// err and everything after reads as zero, so that a parser checks once, after
// a loop whose count it has bounded.
type cursor struct {
	what   string
	b      []byte
	offset int
	err    error
}

// take returns the next n bytes, or nil and an error.
func (c *cursor) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.b)-c.offset {
		c.err = malformed(c.what, "%d bytes at offset %d of %d", n, c.offset, len(c.b))
		return nil
	}
	s := c.b[c.offset : c.offset+n]
	c.offset += n
	return s
}

// rest returns the number of bytes that are left.
func (c *cursor) rest() int { return len(c.b) - c.offset }

func (c *cursor) skip(n int) { c.take(n) }

func (c *cursor) u8() uint8 {
	if s := c.take(1); s != nil {
		return s[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if s := c.take(2); s != nil {
		return binary.LittleEndian.Uint16(s)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if s := c.take(4); s != nil {
		return binary.LittleEndian.Uint32(s)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if s := c.take(8); s != nil {
		return binary.LittleEndian.Uint64(s)
	}
	return 0
}

func (c *cursor) u128() Uint128 {
	lo := c.u64()
	return Uint128{Lo: lo, Hi: c.u64()}
}

// u16s reads n numbers after checking that they are there.
func (c *cursor) u16s(n int) []uint16 {
	s := c.take(2 * n)
	if s == nil || n == 0 {
		return nil
	}
	v := make([]uint16, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint16(s[2*i:])
	}
	return v
}

// u32s reads n numbers after checking that they are there.
func (c *cursor) u32s(n int) []uint32 {
	s := c.take(4 * n)
	if s == nil || n == 0 {
		return nil
	}
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(s[4*i:])
	}
	return v
}

// count checks that n items of at least size bytes fit into what is left, so
// that a hostile count costs no memory.
func (c *cursor) count(n uint64, size int) int {
	if c.err != nil {
		return 0
	}
	if n > uint64(c.rest()/size) {
		c.err = malformed(c.what, "%d items of %d bytes at offset %d of %d", n, size, c.offset, len(c.b))
		return 0
	}
	return int(n)
}
