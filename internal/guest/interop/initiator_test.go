//go:build guest

package interop

import (
	"testing"

	"github.com/qpoll/qpoll/internal/guest"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
)

// TestInitiator runs our initiator against the kernel's target.
func TestInitiator(t *testing.T) {
	k := &kernelTarget{g: guest.Boot(t, guest.Config{Modules: nvmet.Modules, MemoryMiB: 768})}
	var err error
	k.tgt, err = nvmet.Start(t.Context(), k.g)
	check(t, err)
	for _, c := range []struct {
		name  string
		run   func(*testing.T, *kernelTarget)
		allow []string // what the kernel may say
	}{
		{"Data", testData, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer quiet(t, k.g, c.allow...)
			c.run(t, k)
		})
	}
}
