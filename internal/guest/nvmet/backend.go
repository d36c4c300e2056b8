package nvmet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
)

// Backend is what holds the data of a namespace.
type Backend interface {
	// create makes the backend and returns the path for device_path, and what
	// undoes it.
	create(ctx context.Context, t *Target, name string) (path string, undo func(context.Context) error, err error)
}

func nothing(context.Context) error { return nil }

// NullBlk is a block device in the guest's memory, by the null_blk driver.
type NullBlk struct {
	MiB       int // size in MiB
	BlockSize int // logical block size in bytes, 512 or 4096; default 512
	// NoMemory drops what is written; reads give zeros or old data.
	NoMemory bool
	// Delay is the time from submission to completion.
	Delay time.Duration
	// Attrs are further attributes of configfs, such as "badblocks": "+8-15"
	// for media errors in 512-byte sectors 8 to 15.
	Attrs map[string]string
}

func (n NullBlk) create(ctx context.Context, t *Target, name string) (string, func(context.Context) error, error) {
	b, err := n.batch(name)
	if err != nil {
		return "", nil, err
	}
	if err := t.g.Apply(ctx, b); err != nil {
		return "", nil, err
	}
	undo := func(ctx context.Context) error {
		var b guest.Batch
		b.Write(nullRoot+"/"+name+"/power", "0")
		b.Remove(nullRoot + "/" + name)
		return t.g.Apply(ctx, &b)
	}
	return "/dev/" + name, undo, nil
}

func (n NullBlk) batch(name string) (*guest.Batch, error) {
	if n.MiB <= 0 {
		return nil, fmt.Errorf("%w: null_blk of %d MiB", ErrConfig, n.MiB)
	}
	dir := nullRoot + "/" + name
	b := new(guest.Batch)
	b.Mkdir(dir)
	attr := func(k, v string) { b.Write(dir+"/"+k, v) }
	attr("size", strconv.Itoa(n.MiB))
	if n.BlockSize != 0 {
		attr("blocksize", strconv.Itoa(n.BlockSize))
	}
	if !n.NoMemory {
		attr("memory_backed", "1")
		attr("discard", "1")
	}
	if n.Delay > 0 {
		attr("irqmode", "2") // NULL_IRQ_TIMER
		attr("completion_nsec", strconv.FormatInt(n.Delay.Nanoseconds(), 10))
	}
	for _, k := range slices.Sorted(maps.Keys(n.Attrs)) {
		attr(k, n.Attrs[k])
	}
	attr("power", "1")
	return b, nil
}

// File is a regular file in the guest's memory, which nvmet serves by itself
// through the page cache.
type File struct {
	MiB int // size in MiB
}

const fileDir = "/tmp/nvmet"

func (f File) create(ctx context.Context, t *Target, name string) (string, func(context.Context) error, error) {
	path := fileDir + "/" + name
	if err := makeFile(ctx, t.g, path, f.MiB); err != nil {
		return "", nil, err
	}
	return path, func(ctx context.Context) error {
		var b guest.Batch
		b.Remove(path)
		return t.g.Apply(ctx, &b)
	}, nil
}

func makeFile(ctx context.Context, g *guest.Guest, path string, mib int) error {
	if mib <= 0 {
		return fmt.Errorf("%w: file of %d MiB", ErrConfig, mib)
	}
	var b guest.Batch
	b.MkdirAll(fileDir)
	b.Write(path, "")
	if err := g.Apply(ctx, &b); err != nil {
		return err
	}
	return ResizeFile(ctx, g, path, mib)
}

// ResizeFile changes the size of the file behind a File, as Namespace.Path gives
// it. The namespace follows with Namespace.Revalidate.
func ResizeFile(ctx context.Context, g *guest.Guest, path string, mib int) error {
	_, err := g.Run(ctx, "truncate", "-s", strconv.Itoa(mib)+"M", path)
	return err
}

// Loop is a block device on a regular file in the guest's memory, by the loop
// driver.
type Loop struct {
	MiB int // size in MiB
}

func (l Loop) create(ctx context.Context, t *Target, name string) (string, func(context.Context) error, error) {
	if err := t.g.LoadModule(ctx, "loop", ""); err != nil {
		return "", nil, err
	}
	path := fileDir + "/" + name
	if err := makeFile(ctx, t.g, path, l.MiB); err != nil {
		return "", nil, err
	}
	res, err := t.g.Run(ctx, "losetup", "-f")
	if err != nil {
		return "", nil, err
	}
	dev := strings.TrimSpace(string(res.Stdout))
	if _, err := t.g.Run(ctx, "losetup", dev, path); err != nil {
		return "", nil, err
	}
	return dev, func(ctx context.Context) error {
		if _, err := t.g.Run(ctx, "losetup", "-d", dev); err != nil {
			return err
		}
		var b guest.Batch
		b.Remove(path)
		return t.g.Apply(ctx, &b)
	}, nil
}

// RAMDisk is one of the block devices of the brd driver, which LoadRAMDisks
// makes.
type RAMDisk struct {
	Index int // 0 for /dev/ram0
}

func (r RAMDisk) create(context.Context, *Target, string) (string, func(context.Context) error, error) {
	return fmt.Sprintf("/dev/ram%d", r.Index), nothing, nil
}

// LoadRAMDisks loads the brd driver with n RAM disks of a size in MiB. The driver
// takes these numbers once only.
func (t *Target) LoadRAMDisks(ctx context.Context, n, mib int) error {
	return t.g.LoadModule(ctx, "brd", fmt.Sprintf("rd_nr=%d rd_size=%d", n, mib<<10))
}

// Device is any block device or file that is there already.
type Device struct {
	Path string
}

func (d Device) create(context.Context, *Target, string) (string, func(context.Context) error, error) {
	return d.Path, nothing, nil
}
