package main

import (
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// server is a running target with the pollers that it runs on.
type server struct {
	*target.Target
	pollers *poller.Group
}

// startServer starts a target. Its backends are closed with it, or at once if
// it does not start.
func startServer(cfg target.Config, cores []int, p poller.Config) (*server, error) {
	pollers, err := poller.NewGroup(cores, p)
	if err != nil {
		return nil, errors.Join(err, closeBackends(cfg))
	}
	t, err := target.New(cfg)
	if err != nil {
		return nil, errors.Join(err, pollers.Close(), closeBackends(cfg))
	}
	if err := t.Start(pollers.Pollers()...); err != nil {
		return nil, errors.Join(err, t.Close(), pollers.Close())
	}
	return &server{t, pollers}, nil
}

func closeBackends(cfg target.Config) error {
	var errs []error
	for _, s := range cfg.Subsystems {
		for _, n := range s.Namespaces {
			errs = append(errs, n.Backend.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *server) close() error { return errors.Join(s.Target.Close(), s.pollers.Close()) }

// newBackend makes what a namespace keeps its data in.
func newBackend(kind string, capacity size, file string) (backend.Backend, error) {
	switch kind {
	case "null":
		return backend.NewNull(int64(capacity)), nil
	case "memory":
		return backend.NewMemory(backend.MemoryConfig{Size: int64(capacity), HugePages: true})
	case "file":
		return backend.NewFile(backend.FileConfig{Path: file, Size: int64(capacity)})
	}
	return nil, fmt.Errorf("backend %q", kind)
}
