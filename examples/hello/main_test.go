package main

import (
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func TestHello(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	const want = `qpoll target, serial number `
	if !strings.HasPrefix(out.String(), want) || !strings.HasSuffix(out.String(), "namespace 1: 131072 blocks of 512 bytes\nread \"hello, NVMe\"\ncompared\n") {
		t.Errorf("output %s", &out)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"trtype:tcp", "traddr:127.0.0.1"}} {
		var out strings.Builder
		if err := run(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
