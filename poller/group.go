package poller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Group is a set of running pollers, one on each of several cores.
type Group struct {
	pollers []*Poller
}

// NewGroup starts a poller on each of the given cores, or none if one of them
// fails. What cfg says holds for all of them, but for the core; a name gets
// the core's number appended.
func NewGroup(cores []int, cfg Config) (*Group, error) {
	if len(cores) == 0 {
		return nil, fmt.Errorf("%w: a group without cores", ErrConfig)
	}
	g := &Group{}
	for i, core := range cores {
		if slices.Contains(cores[:i], core) {
			return nil, errors.Join(fmt.Errorf("%w: core %d twice in a group", ErrConfig, core), g.Close())
		}
		if err := g.start(core, cfg); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (g *Group) start(core int, cfg Config) error {
	cfg.Core = core
	if cfg.Name != "" {
		cfg.Name += "/" + strconv.Itoa(core)
	}
	p, err := New(cfg)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return errors.Join(err, p.Close())
	}
	g.pollers = append(g.pollers, p)
	return nil
}

// Pollers returns the pollers in the order of the cores that the group was
// made with.
func (g *Group) Pollers() []*Poller { return slices.Clone(g.pollers) }

// Close closes all pollers. It fails on the core of one of them, with
// [ErrOnCore]; that one then goes on running.
func (g *Group) Close() error {
	var errs []error
	for _, p := range g.pollers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Each calls f for each poller of a group, one after the other, on the
// caller's goroutine: to connect a queue pair for each core, say. It goes on
// after an error, until ctx ends, and returns the results of the calls that
// succeeded, in order, with the errors of the others joined; undoing what
// succeeded, if it is all or nothing, is the caller's.
func Each[T any](ctx context.Context, g *Group, f func(context.Context, *Poller) (T, error)) ([]T, error) {
	var results []T
	var errs []error
	for _, p := range g.pollers {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("poller %q: %w", p.name, context.Cause(ctx)))
			break
		}
		r, err := f(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("poller %q: %w", p.name, err))
			continue
		}
		results = append(results, r)
	}
	return results, errors.Join(errs...)
}
