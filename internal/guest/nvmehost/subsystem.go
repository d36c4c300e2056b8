package nvmehost

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/qpoll/qpoll/internal/guest"
)

const subsysDir = "/sys/class/nvme-subsystem"

// The path selectors of native multipath.
const (
	PolicyNUMA       = "numa"
	PolicyRoundRobin = "round-robin"
	PolicyQueueDepth = "queue-depth"
)

// Subsystem is a subsystem as multipath sees it.
type Subsystem struct {
	Name     string // such as nvme-subsys0
	NQN      string
	Model    string
	Serial   string
	IOPolicy string // such as PolicyNUMA
}

// Namespace is a namespace of a subsystem: a multipath head.
type Namespace struct {
	Subsystem string // such as nvme-subsys0
	Device    string // block device, such as /dev/nvme0n1
	NSID      uint32
	UUID      string
	NGUID     string
	Bytes     int64
}

// ErrNoSubsystem is returned for a subsystem that the guest is not connected to.
var ErrNoSubsystem = errors.New("nvmehost: no such subsystem")

// Subsystems returns the subsystems in the guest, sorted by name.
func Subsystems(ctx context.Context, g *guest.Guest) ([]Subsystem, error) {
	files, err := g.Glob(ctx, patterns(subsysDir+"/nvme-subsys*/", "subsysnqn", "model", "serial", "iopolicy")...)
	if err != nil {
		return nil, err
	}
	var out []Subsystem
	for p, f := range files {
		dir, attr := path.Split(p)
		if attr == "subsysnqn" {
			out = append(out, Subsystem{
				Name: path.Base(dir), NQN: f.Data, Model: files[dir+"model"].Data,
				Serial: files[dir+"serial"].Data, IOPolicy: files[dir+"iopolicy"].Data,
			})
		}
	}
	slices.SortFunc(out, func(a, b Subsystem) int { return compareNames(a.Name, b.Name) })
	return out, nil
}

func patterns(prefix string, attrs ...string) []string {
	out := make([]string, len(attrs))
	for i, a := range attrs {
		out[i] = prefix + a
	}
	return out
}

// FindSubsystem returns the subsystem with the NQN.
func FindSubsystem(ctx context.Context, g *guest.Guest, nqn string) (Subsystem, error) {
	all, err := Subsystems(ctx, g)
	if err != nil {
		return Subsystem{}, err
	}
	for _, s := range all {
		if s.NQN == nqn {
			return s, nil
		}
	}
	return Subsystem{}, fmt.Errorf("%w: %s", ErrNoSubsystem, nqn)
}

// SetIOPolicy sets the path selector of the subsystem with the NQN.
func SetIOPolicy(ctx context.Context, g *guest.Guest, nqn, policy string) error {
	s, err := FindSubsystem(ctx, g, nqn)
	if err != nil {
		return err
	}
	return g.WriteFile(ctx, subsysDir+"/"+s.Name+"/iopolicy", policy)
}

// Namespaces returns the namespaces of the subsystem with the NQN, sorted by
// number.
func Namespaces(ctx context.Context, g *guest.Guest, nqn string) ([]Namespace, error) {
	s, err := FindSubsystem(ctx, g, nqn)
	if err != nil {
		return nil, err
	}
	files, err := g.Glob(ctx, patterns(subsysDir+"/"+s.Name+"/nvme*n*/", "nsid", "uuid", "nguid", "size")...)
	if err != nil {
		return nil, err
	}
	var out []Namespace
	for p, f := range files {
		dir, attr := path.Split(p)
		if attr != "nsid" || strings.Contains(path.Base(dir), "c") {
			continue
		}
		sectors, err := strconv.ParseInt(files[dir+"size"].Data, 10, 64)
		if err != nil {
			continue // it is just going away
		}
		out = append(out, Namespace{
			Subsystem: s.Name, Device: "/dev/" + path.Base(dir), NSID: uint32(atoi(f.Data)),
			UUID: files[dir+"uuid"].Data, NGUID: files[dir+"nguid"].Data, Bytes: sectors * 512,
		})
	}
	slices.SortFunc(out, func(a, b Namespace) int { return int(int64(a.NSID) - int64(b.NSID)) })
	return out, nil
}

// WaitNamespace waits for the kernel to have found a namespace and made its block
// device. That takes a path that can be used: optimized or non-optimized.
func WaitNamespace(ctx context.Context, g *guest.Guest, nqn string, nsid uint32) (Namespace, error) {
	var found Namespace
	err := g.Until(ctx, fmt.Sprintf("namespace %d of %s", nsid, nqn), func() (bool, error) {
		all, err := Namespaces(ctx, g, nqn)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(all, func(n Namespace) bool { return n.NSID == nsid && n.Bytes > 0 })
		if i < 0 {
			return false, nil
		}
		found = all[i]
		return g.Exists(ctx, found.Device)
	})
	return found, err
}
