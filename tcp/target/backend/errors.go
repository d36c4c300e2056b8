package backend

import (
	"errors"
	"fmt"
)

// Errors of this package.
var (
	// ErrConfig means that a configuration makes no sense.
	ErrConfig = errors.New("backend: bad configuration")

	// ErrResize means that a backend cannot have the size that was asked for.
	ErrResize = errors.New("backend: cannot resize")
)

func errSize(size int64) error { return fmt.Errorf("%w: to %d bytes", ErrResize, size) }
