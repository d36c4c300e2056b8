package nvmet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/qpoll/qpoll/internal/guest"
)

// Modules are the modules that a target needs. Booting a guest with them saves
// Start the time to load them.
var Modules = []string{"null_blk nr_devices=0", "nvmet-tcp"}

const (
	root     = "/sys/kernel/config/nvmet"
	nullRoot = "/sys/kernel/config/nullb"
)

// ErrConfig is wrapped by errors about a configuration that cannot work.
var ErrConfig = errors.New("nvmet: bad configuration")

// Target is the kernel's target in one guest, with all of its subsystems and
// ports. Its methods, and those of the objects that it makes, are safe for
// concurrent use, but two of them should not change the same object at once.
type Target struct {
	g *guest.Guest

	mu       sync.Mutex
	backends int    // number of backends made, for their names
	lastPort uint16 // highest port ID in use
}

// Start loads the target into the kernel of the guest. A guest has one target.
func Start(ctx context.Context, g *guest.Guest) (*Target, error) {
	for _, m := range []struct{ name, params string }{{"null_blk", "nr_devices=0"}, {"nvmet-tcp", ""}} {
		if err := g.LoadModule(ctx, m.name, m.params); err != nil {
			return nil, fmt.Errorf("nvmet: %w", err)
		}
	}
	return &Target{g: g}, nil
}

// SetDiscoveryNQN gives the discovery subsystem a unique name besides the
// well-known one.
func (t *Target) SetDiscoveryNQN(ctx context.Context, nqn string) error {
	return t.g.WriteFile(ctx, root+"/discovery_nqn", nqn)
}

// nextBackend returns a name for a new backend.
func (t *Target) nextBackend() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.backends++
	return fmt.Sprintf("qpoll%d", t.backends)
}

// portID returns the ID to use for a new port that asks for want, 0 for any.
func (t *Target) portID(want uint16) uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if want == 0 {
		want = t.lastPort + 1
	}
	t.lastPort = max(t.lastPort, want)
	return want
}
