package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/testutil"
	"github.com/qpoll/qpoll/pcie"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func TestIdentify(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"pcie pcietest\n", "model      qpoll software controller\n", "serial     PCIETEST0001\n",
		"subsystem  nqn.2026-01.io.github.qpoll:pcietest, controller 1\n", "version    2.1", "of up to 1024 entries",
		"transfers  up to 1024 KiB", "namespace 1: 64 MiB in 131072 blocks of 512 bytes\n", "health     ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, &out)
		}
	}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "sys/bus/pci/devices/0000:01:00.0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"class": "0x010802\n", "vendor": "0x144d\n", "device": "0xa808\n",
		"subsystem_vendor": "0x144d\n", "subsystem_device": "0xa801\n", "revision": "0x00\n", "resource": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := list(pcie.Host{Root: root}, &out); err != nil || out.String() != "0000:01:00.0  144d:a808  no driver\n" {
		t.Errorf("%v, output %s", err, &out)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"trtype:pcie", "traddr:0000:01:00.0"}, {"trtype:pcie traddr:ffff:ff:1f.7"}} {
		var out strings.Builder
		if err := run(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
