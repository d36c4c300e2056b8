package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/testutil"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie/pcietest"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const want = "qpoll software controller, serial number PCIETEST0001\nread \"hello, drive\"\n"

func TestHello(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("output %s", &out)
	}
}

// An address is taken, too, and the block is what it was before.
func TestAddress(t *testing.T) {
	disk, err := pcietest.NewMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	before := []byte("of value")
	if _, err := disk.WriteAt(before, 0); err != nil {
		t.Fatal(err)
	}
	c, err := pcietest.New(pcietest.Config{Namespaces: []pcietest.NamespaceConfig{{Backend: disk}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "cntrl"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- c.Serve(l) }()
	var out strings.Builder
	if err := run([]string{"trtype:vfio-user traddr:" + dir}, &out); err != nil || out.String() != want {
		t.Errorf("%v, output %s", err, &out)
	}
	c.Inject(pcietest.Rule{Action: pcietest.Fail, Status: nvme.StatusWriteFault, Match: pcietest.Opcode(nvme.OpWrite, false)})
	if err := run([]string{"trtype:vfio-user traddr:" + dir}, &out); err == nil || !strings.Contains(err.Error(), "Write Fault") {
		t.Errorf("error %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	got := make([]byte, len(before))
	if _, err := disk.ReadAt(got, 0); err != nil || string(got) != string(before) {
		t.Errorf("the block begins with %q, %v", got, err)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"trtype:pcie", "traddr:0000:01:00.0"}, {"trtype:vfio-user traddr:" + t.TempDir()}, {"trtype:pcie traddr:ffff:ff:1f.7"}} {
		var out strings.Builder
		if err := run(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
