package nvme

import (
	"strings"
	"testing"
)

// The host NQN and identifier of a configuration.
func TestHost(t *testing.T) {
	const uuid = "01234567-89ab-4def-8123-456789abcdef"
	id, err := ParseUUID(uuid)
	if err != nil {
		t.Fatal(err)
	}
	nqn, got := (&Config{HostNQN: uuidNQN + uuid}).Host()
	if nqn != uuidNQN+uuid || got != id {
		t.Error("the UUID of the NQN is the identifier", nqn, got)
	}
	other := [16]byte{9}
	if _, got = (&Config{HostNQN: uuidNQN + uuid, HostID: other}).Host(); got != other {
		t.Error("a given identifier wins", got)
	}
	seen := map[[16]byte]string{}
	for _, name := range []string{"nqn.2026-01.io.qpoll:a", "nqn.2026-01.io.qpoll:b", uuidNQN + "no-uuid", uuidNQN + strings.Repeat("0", 32)} {
		nqn, got := (&Config{HostNQN: name}).Host()
		_, again := (&Config{HostNQN: name}).Host()
		if nqn != name || got == [16]byte{} || got != again || got[6]>>4 != 8 || got[8]>>6 != 2 {
			t.Errorf("%s: %s, %x, %x", name, nqn, got, again)
		}
		if was, dup := seen[got]; dup {
			t.Errorf("%s and %s are one host", was, name)
		}
		seen[got] = name
	}
	// Whatever this machine has in /etc/nvme, the answer is usable and stable.
	nqn, got = (&Config{}).Host()
	nqn2, got2 := (&Config{}).Host()
	if CheckNQN(nqn) != nil || got == [16]byte{} || nqn != nqn2 || got != got2 {
		t.Error(nqn, nqn2, got, got2)
	}
}
