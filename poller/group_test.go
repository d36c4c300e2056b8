package poller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// newGroup returns a group on all cores that there are.
func newGroup(t *testing.T, cfg Config) (*Group, []int) {
	t.Helper()
	cores, err := AllowedCores()
	must(t, err)
	cfg.Idle = Adaptive
	g, err := NewGroup(cores, cfg)
	must(t, err)
	t.Cleanup(func() { must(t, g.Close()) })
	return g, cores
}

func TestGroup(t *testing.T) {
	for name, want := range map[string]string{"": "core %d", "io": "io/%d"} {
		g, cores := newGroup(t, Config{Name: name})
		var on []int
		for _, p := range g.Pollers() {
			on = append(on, p.Core())
			if want := fmt.Sprintf(want, p.Core()); p.Name() != want {
				t.Errorf("%q, want %q", p.Name(), want)
			}
			onCore(t, p, func() {})
		}
		if !slices.Equal(on, cores) {
			t.Errorf("pollers on %v, want %v", on, cores)
		}
		must(t, g.Close())
		for _, p := range g.Pollers() {
			if err := p.Post(func() {}); !errors.Is(err, ErrClosed) {
				t.Errorf("%v, want ErrClosed", err)
			}
		}
	}
}

func TestGroupAllOrNothing(t *testing.T) {
	core := anyCore(t)
	for name, c := range map[string]struct {
		cores []int
		cfg   Config
		want  error
	}{
		"no cores":         {nil, Config{}, ErrConfig},
		"a core twice":     {[]int{core, core}, Config{}, ErrConfig},
		"a core too far":   {[]int{core, maxCore}, Config{}, ErrCoreNotAllowed},
		"no core":          {[]int{core, -1}, Config{}, ErrConfig},
		"bad config":       {[]int{core}, Config{Mailbox: -1}, ErrConfig},
		"nothing to start": {[]int{maxCore}, Config{}, ErrCoreNotAllowed},
	} {
		started, stopped := 0, 0
		c.cfg.Idle = Adaptive
		c.cfg.Events = &Events{Start: func(*Poller) { started++ }, Stop: func(*Poller) { stopped++ }}
		g, err := NewGroup(c.cores, c.cfg)
		if g != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, g, err, c.want)
		}
		if started != stopped {
			t.Errorf("%s: %d started and %d stopped", name, started, stopped)
		}
	}
}

func TestGroupCloseOnCore(t *testing.T) {
	g, _ := newGroup(t, Config{})
	p := g.Pollers()[0]
	onCore(t, p, func() {
		if err := g.Close(); !errors.Is(err, ErrOnCore) {
			t.Errorf("%v, want ErrOnCore", err)
		}
	})
	must(t, g.Close())
}

func TestEach(t *testing.T) {
	g, cores := newGroup(t, Config{})
	got, err := Each(patience(t), g, func(ctx context.Context, p *Poller) (core int, err error) {
		err = p.Call(ctx, func() { core = p.Core() })
		return core, err
	})
	if err != nil || !slices.Equal(got, cores) {
		t.Errorf("%v, %v; want %v", got, err, cores)
	}
}

func TestEachErrors(t *testing.T) {
	// Each does not need running pollers.
	g := &Group{pollers: []*Poller{
		newPoller(t, Config{Name: "a"}), newPoller(t, Config{Name: "b"}), newPoller(t, Config{Name: "c"}),
	}}
	broken := errors.New("broken")
	got, err := Each(patience(t), g, func(_ context.Context, p *Poller) (string, error) {
		if p.Name() == "b" {
			return "nothing", broken
		}
		return p.Name(), nil
	})
	if !slices.Equal(got, []string{"a", "c"}) || !errors.Is(err, broken) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("%v, %v", got, err)
	}

	ctx, cancel := context.WithCancelCause(context.Background())
	got, err = Each(ctx, g, func(_ context.Context, p *Poller) (string, error) {
		cancel(broken)
		return p.Name(), nil
	})
	if !slices.Equal(got, []string{"a"}) || !errors.Is(err, broken) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("after the context has ended: %v, %v", got, err)
	}
}
