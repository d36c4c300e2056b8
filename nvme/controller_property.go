package nvme

import (
	"context"
	"fmt"
)

// Property reads a controller property (register) of size 4 or 8 bytes. Over
// fabrics that takes a connection, and it fails with ErrNotLive without one.
func (c *Controller) Property(ctx context.Context, offset uint32, size int) (v uint64, err error) {
	err = c.withProperty(ctx, func() error {
		v, err = c.t.Property(ctx, offset, size)
		return err
	})
	return v, c.opError(fmt.Sprintf("read property %#x", offset), 0, err)
}

// SetProperty writes a controller property (register); see Property.
func (c *Controller) SetProperty(ctx context.Context, offset uint32, size int, v uint64) error {
	err := c.withProperty(ctx, func() error { return c.t.SetProperty(ctx, offset, size, v) })
	return c.opError(fmt.Sprintf("write property %#x", offset), 0, err)
}

// withProperty calls f while the transport can be used, one caller at a time.
func (c *Controller) withProperty(ctx context.Context, f func() error) error {
	if c.onCore() {
		return ErrOnCore
	}
	if err := c.use(); err != nil {
		return err
	}
	defer c.users.Done()
	select {
	case c.property <- struct{}{}:
	case <-ctx.Done():
		return ctxError(ctx)
	}
	defer func() { <-c.property }()
	return f()
}
