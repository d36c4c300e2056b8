package nvme

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Factory makes the transport to one controller; cfg has its defaults filled
// in. It does not connect.
type Factory func(addr Address, cfg *Config) (Transport, error)

var (
	registryMu sync.Mutex
	registry   = map[string]Factory{}
)

// Register makes a transport known to Open under its trtype. Transports call
// it from init, so that a blank import suffices. It panics if the name is
// taken, which is a mistake in the program.
func Register(name string, f Factory) {
	registryMu.Lock()
	defer registryMu.Unlock()
	if _, dup := registry[name]; dup || f == nil {
		panic("nvme: transport " + name + " registered twice or nil")
	}
	registry[name] = f
}

func factory(name string) (Factory, error) {
	registryMu.Lock()
	defer registryMu.Unlock()
	if f, ok := registry[name]; ok {
		return f, nil
	}
	var have []string
	for k := range registry {
		have = append(have, k)
	}
	slices.Sort(have)
	list := strings.Join(have, ", ")
	if list == "" {
		list = "none"
	}
	pkg := name
	if name == "vfiouser" {
		pkg = "pcie/vfiouser"
	}
	return nil, fmt.Errorf("%w: transport %q is not linked in (have: %s; import github.com/qpoll/qpoll/%s)", ErrAddress, name, list, pkg)
}

// Open connects to the controller that addr names (see ParseAddress) and
// initialises it. ctx bounds the opening alone. cfg may be nil.
func Open(ctx context.Context, addr string, cfg *Config) (*Controller, error) {
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	return OpenAddress(ctx, a, cfg)
}

// OpenAddress is Open for an address in parts.
func OpenAddress(ctx context.Context, a Address, cfg *Config) (*Controller, error) {
	f, err := factory(a.Transport)
	if err != nil {
		return nil, err
	}
	full := cfg.withDefaults()
	if err := full.apply(&a); err != nil {
		return nil, err
	}
	t, err := f(a, &full)
	if err != nil {
		return nil, err
	}
	return openController(ctx, t, full)
}

// NewController is Open for a transport that the caller made, for tests and
// for transports of the user's own. The controller closes t.
func NewController(ctx context.Context, t Transport, cfg *Config) (*Controller, error) {
	return openController(ctx, t, cfg.withDefaults())
}
