package guest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/qpoll/qpoll/internal/guest/kmod"
	"github.com/qpoll/qpoll/internal/guest/wire"
)

// configfsDir is where configfs is mounted in the guest.
const configfsDir = "/sys/kernel/config"

// LoadModule loads a module of the kernel with the given parameters, and before
// it what it needs. A module that is loaded already, or built in, stays as it is,
// parameters and all.
func (g *Guest) LoadModule(ctx context.Context, name, params string) error {
	mods, err := g.mods.Resolve(name)
	if err != nil {
		return err
	}
	for i, m := range mods {
		p := ""
		if i == len(mods)-1 {
			p = params
		}
		if err := g.insmod(ctx, m, p); err != nil {
			return err
		}
	}
	return nil
}

// insmod brings one module into the kernel. Two callers may do so at the same
// time: the kernel lets one of them win, and the agent takes that for success.
func (g *Guest) insmod(ctx context.Context, m kmod.Module, params string) error {
	g.mu.Lock()
	have := g.loaded[m.Name]
	g.mu.Unlock()
	if have {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(g.set.Modules(), m.File))
	if err != nil {
		return err
	}
	path := moduleDir + "/" + m.Name + ".ko"
	if err := g.Upload(ctx, bytes.NewReader(b), path, 0o644); err != nil {
		return err
	}
	if _, err := g.step(ctx, wire.StepInsmod, path, []byte(params)); err != nil {
		return err
	}
	if m.Name == "configfs" {
		if _, err := g.step(ctx, wire.StepMount, configfsDir, []byte("configfs")); err != nil {
			return err
		}
	}
	g.mu.Lock()
	g.loaded[m.Name] = true
	g.mu.Unlock()
	return nil
}
