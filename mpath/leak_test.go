package mpath

import (
	flags "flag"
	"testing"

	_ "pgregory.net/rapid" // has the flags below

	"github.com/qpoll/qpoll/internal/testutil"
)

func TestMain(m *testing.M) {
	// Defaults for package rapid that suit a quick run; the command line wins.
	for name, value := range map[string]string{"rapid.checks": "40", "rapid.nofailfile": "true"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	testutil.Main(m)
}
