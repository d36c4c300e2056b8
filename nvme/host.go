package nvme

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
)

const uuidNQN = "nqn.2014-08.org.nvmexpress:uuid:"

// Host returns the host NQN and host identifier that c means: see the fields
// HostNQN and HostID.
func (c *Config) Host() (nqn string, id [16]byte) {
	nqn, id = c.HostNQN, c.HostID
	if nqn == "" {
		nqn = firstLine("/etc/nvme/hostnqn")
		if CheckNQN(nqn) != nil {
			nqn = ""
		}
		if fid, err := ParseUUID(firstLine("/etc/nvme/hostid")); nqn != "" && err == nil && id == [16]byte{} {
			id = fid
		}
	}
	if nqn == "" {
		nqn = uuidNQN + FormatUUID(processHostID())
	}
	if id == [16]byte{} {
		id = hostIDOf(nqn)
	}
	return nqn, id
}

// hostIDOf derives a stable, non-zero host identifier from a host NQN.
func hostIDOf(nqn string) [16]byte {
	if rest, ok := strings.CutPrefix(nqn, uuidNQN); ok {
		if id, err := ParseUUID(rest); err == nil && id != [16]byte{} {
			return id
		}
	}
	sum := sha256.Sum256([]byte(nqn))
	return versionUUID([16]byte(sum[:16]), 8)
}

var processHostID = sync.OnceValue(func() [16]byte {
	var b [16]byte
	rand.Read(b[:]) // never fails, by its documentation
	return versionUUID(b, 4)
})

func versionUUID(b [16]byte, version byte) [16]byte {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return b
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	s, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(s)
}

// ParseUUID parses the usual text form of a UUID, with its four hyphens or
// without any.
func ParseUUID(s string) (id [16]byte, err error) {
	digits := s
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		digits = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 16 {
		return id, fmt.Errorf("nvme: %q is not a UUID", s)
	}
	return [16]byte(b), nil
}
