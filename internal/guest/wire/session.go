package wire

import (
	"io"
	"time"

	"github.com/hashicorp/yamux"
)

// SessionConfig returns the configuration that both ends of the multiplexed
// session use. There are no keep-alives and no time limit on opening a stream:
// an emulated guest on a busy machine may be silent for a long time, the host
// has a deadline of its own for each request, and it sees the end of the
// emulator.
func SessionConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.StreamOpenTimeout = 0
	c.StreamCloseTimeout = time.Minute
	c.ConnectionWriteTimeout = 5 * time.Minute
	c.LogOutput = io.Discard
	return c
}
