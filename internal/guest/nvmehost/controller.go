package nvmehost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/qpoll/qpoll/internal/guest"
)

const classDir = "/sys/class/nvme"

// The states of a controller, as sysfs shows them.
const (
	Live       = "live"
	Connecting = "connecting"
	Resetting  = "resetting"
	Deleting   = "deleting"
)

// ControllerInfo is what sysfs tells about a controller.
type ControllerInfo struct {
	Name       string // such as nvme0
	State      string // such as Live
	Transport  string // such as tcp
	Address    string // such as traddr=127.0.0.1,trsvcid=4420,src_addr=127.0.0.1
	NQN        string // of the subsystem
	HostNQN    string
	Cntlid     int
	QueueCount int // with the admin queue
	SQSize     int // entries of an I/O queue, less one
	Paths      []Path
}

// Path is a namespace as one controller reaches it.
type Path struct {
	Name     string // such as nvme0c1n1
	NSID     uint32
	ANAState string // such as optimized
	ANAGroup uint32
}

// Controllers returns all controllers in the guest, sorted by name.
func Controllers(ctx context.Context, g *guest.Guest) ([]ControllerInfo, error) {
	var patterns []string
	for _, a := range []string{"state", "transport", "address", "subsysnqn", "hostnqn", "cntlid", "queue_count", "sqsize"} {
		patterns = append(patterns, classDir+"/nvme*/"+a)
	}
	for _, a := range []string{"nsid", "ana_state", "ana_grpid"} {
		patterns = append(patterns, classDir+"/nvme*/nvme*c*n*/"+a)
	}
	files, err := g.Glob(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	return parseControllers(files), nil
}

func parseControllers(files map[string]guest.GlobFile) []ControllerInfo {
	var out []ControllerInfo
	for p := range files {
		dir, attr := path.Split(p)
		if attr != "state" || path.Dir(path.Clean(dir)) != classDir {
			continue
		}
		get := func(a string) string { return files[dir+a].Data }
		c := ControllerInfo{
			Name: path.Base(dir), State: get("state"), Transport: get("transport"),
			Address: get("address"), NQN: get("subsysnqn"), HostNQN: get("hostnqn"),
			Cntlid: atoi(get("cntlid")), QueueCount: atoi(get("queue_count")), SQSize: atoi(get("sqsize")),
		}
		c.Paths = parsePaths(files, dir)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b ControllerInfo) int { return compareNames(a.Name, b.Name) })
	return out
}

func parsePaths(files map[string]guest.GlobFile, ctrlDir string) []Path {
	var out []Path
	for p := range files {
		dir, attr := path.Split(p)
		if attr != "nsid" || !strings.HasPrefix(p, ctrlDir) {
			continue
		}
		out = append(out, Path{
			Name: path.Base(dir), NSID: uint32(atoi(files[p].Data)),
			ANAState: files[dir+"ana_state"].Data, ANAGroup: uint32(atoi(files[dir+"ana_grpid"].Data)),
		})
	}
	slices.SortFunc(out, func(a, b Path) int { return compareNames(a.Name, b.Name) })
	return out
}

// atoi gives 0 for an attribute that is not there.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// compareNames sorts nvme2 before nvme10.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// ErrNoController is returned for a controller that is not there any more.
var ErrNoController = errors.New("nvmehost: no such controller")

// Info returns what sysfs tells about the controller.
func (c *Controller) Info(ctx context.Context) (ControllerInfo, error) {
	all, err := Controllers(ctx, c.g)
	if err != nil {
		return ControllerInfo{}, err
	}
	i := slices.IndexFunc(all, func(i ControllerInfo) bool { return i.Name == c.Name })
	if i < 0 {
		return ControllerInfo{}, fmt.Errorf("%w: %s", ErrNoController, c.Name)
	}
	return all[i], nil
}

// WaitInfo waits until cond is true for what sysfs tells about the controller.
func (c *Controller) WaitInfo(ctx context.Context, what string, cond func(ControllerInfo) bool) error {
	var last ControllerInfo
	err := c.g.Until(ctx, c.Name+" "+what, func() (bool, error) {
		var err error
		last, err = c.Info(ctx)
		return err == nil && cond(last), err
	})
	if err != nil {
		return fmt.Errorf("%w; last seen: %+v", err, last)
	}
	return nil
}

// WaitState waits until the controller is in a state, such as Live.
func (c *Controller) WaitState(ctx context.Context, state string) error {
	return c.WaitInfo(ctx, state, func(i ControllerInfo) bool { return i.State == state })
}

// WaitANA waits until the path to the namespace is in an ANA state.
func (c *Controller) WaitANA(ctx context.Context, nsid uint32, state string) error {
	return c.WaitInfo(ctx, fmt.Sprintf("namespace %d %s", nsid, state), func(i ControllerInfo) bool {
		return slices.ContainsFunc(i.Paths, func(p Path) bool { return p.NSID == nsid && p.ANAState == state })
	})
}

// Disconnect deletes the controller and returns when it is gone.
func (c *Controller) Disconnect(ctx context.Context) error {
	// The kernel deletes before the write returns.
	return c.write(ctx, "delete_controller")
}

// Reset makes the kernel reset the controller: it tears the association down
// and builds a new one.
func (c *Controller) Reset(ctx context.Context) error { return c.write(ctx, "reset_controller") }

// Rescan makes the kernel look for namespaces again.
func (c *Controller) Rescan(ctx context.Context) error { return c.write(ctx, "rescan_controller") }

func (c *Controller) write(ctx context.Context, attr string) error {
	err := c.g.WriteFile(ctx, classDir+"/"+c.Name+"/"+attr, "1")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoController, err)
	}
	return err
}
