package main

import (
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func TestPoller(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "100000 reads in ") || !strings.HasSuffix(out.String(), ", 0.00 allocations per read\n") {
		t.Errorf("output %s", &out)
	}
}
