package nvme

import (
	"bytes"
	"strings"
)

// ascii returns a space-padded ASCII field as a string: without padding, and
// with a question mark for each byte that does not print, since the field goes
// into logs and on terminals and comes from outside.
func ascii(b []byte) string {
	b = bytes.Trim(b, " \x00")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, string(b))
}

// putASCII fills a space-padded ASCII field. A longer string is cut off.
func putASCII(dst []byte, s string) {
	n := copy(dst, s)
	for i := n; i < len(dst); i++ {
		dst[i] = ' '
	}
}
