package main

import (
	"os"
	"testing"

	"github.com/qpoll/qpoll/internal/testutil"
)

// asCommand is the environment variable that makes the test binary behave as
// bench itself, for tests that send it signals.
const asCommand = "QPOLL_BENCH_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	testutil.Main(m)
}
