package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/pcie"
)

// fakeMachine has functions, and changes their drivers as the kernel does.
type fakeMachine struct {
	functions []pcie.Function
	uses      map[string][]pcie.Use
	err       map[string]error // of binding and giving back
}

func (m *fakeMachine) Functions() ([]pcie.Function, error) { return m.functions, nil }

func (m *fakeMachine) find(address string) (*pcie.Function, error) {
	at, err := pcie.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	for i := range m.functions {
		if m.functions[i].Address == at {
			return &m.functions[i], m.err[at]
		}
	}
	return nil, fmt.Errorf("%w: %s", pcie.ErrNoFunction, at)
}

func (m *fakeMachine) Function(address string) (pcie.Function, error) {
	f, err := m.find(address)
	if err != nil {
		return pcie.Function{}, err
	}
	return *f, nil
}

func (m *fakeMachine) Uses(address string) ([]pcie.Use, error) {
	if address == "0000:04:00.0" { // gone since it was listed
		return nil, pcie.ErrNoFunction
	}
	return m.uses[address], nil
}

func (m *fakeMachine) rebind(address, driver string) error {
	f, err := m.find(address)
	if err == nil {
		f.Driver = driver
	}
	return err
}

func (m *fakeMachine) Bind(_ context.Context, address string) error {
	return m.rebind(address, "vfio-pci")
}

func (m *fakeMachine) GiveBack(_ context.Context, address string) error {
	return m.rebind(address, "nvme")
}

func newFakeMachine() *fakeMachine {
	return &fakeMachine{
		functions: []pcie.Function{
			{Address: "0000:01:00.0", Vendor: 0x144d, Device: 0xa808, Driver: "nvme", IOMMUGroup: 7, NUMANode: 1,
				Peers: []pcie.Peer{{Address: "0000:01:00.1", Class: 0x010601, Driver: "ahci"}, {Address: "0000:00:01.0", Class: 0x060400, Driver: "pcieport"}}},
			{Address: "0000:02:00.0", Vendor: 0x8086, Device: 0x0a54, Driver: "nvme", IOMMUGroup: -1, NUMANode: -1},
			{Address: "0000:03:00.0", Vendor: 0x1b36, Device: 0x0010, Driver: "vfio-pci", IOMMUGroup: 9, Cdev: "vfio0"},
			{Address: "0000:04:00.0", Driver: "nvme"},
			{Address: "0000:05:00.0", Vendor: 0x1b36, Device: 0x0010, IOMMUGroup: 11},
		},
		uses: map[string][]pcie.Use{"0000:02:00.0": {{Device: "nvme1n1p2", Kind: pcie.UseMount, By: "/"}, {Device: "nvme1n1p3", Kind: pcie.UseSwap}}},
		err: map[string]error{
			"0000:02:00.0": &pcie.InUseError{Address: "0000:02:00.0", Uses: []pcie.Use{{Device: "nvme1n1p2", Kind: pcie.UseMount, By: "/"}}},
			"0000:05:00.0": &pcie.PermissionError{Path: "/sys/bus/pci/devices/0000:05:00.0/driver_override", Err: fs.ErrPermission},
		},
	}
}

func TestPCIList(t *testing.T) {
	var out strings.Builder
	if err := pciOn(t.Context(), newFakeMachine(), []string{"list"}, &out); err != nil {
		t.Fatal(err)
	}
	want := `address        id         driver      group  node  state
0000:01:00.0   144d:a808  nvme            7     1  free: bench pci bind 0000:01:00.0; shares its group with 0000:01:00.1 (class 0x010601, ahci)
0000:02:00.0   8086:0a54  nvme         none  none  in use: nvme1n1p2 is mounted at /; nvme1n1p3 is swap space; no IOMMU
0000:03:00.0   1b36:0010  vfio-pci        9     0  ready: -target pcie:0000:03:00.0
0000:05:00.0   1b36:0010  none           11     0  free: bench pci bind 0000:05:00.0
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
	out.Reset()
	if err := pciOn(t.Context(), &fakeMachine{}, []string{"list"}, &out); err != nil || !strings.Contains(out.String(), "no NVMe drives") {
		t.Errorf("%v, %s", err, &out)
	}
}

func pciJSON(t *testing.T, m machine, args ...string) (list []drive) {
	t.Helper()
	var out strings.Builder
	if err := pciOn(t.Context(), m, args, &out); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(out.String()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return list
}

func TestPCIJSON(t *testing.T) {
	m := newFakeMachine()
	if list := pciJSON(t, &fakeMachine{}, "list", "-json"); list == nil || len(list) != 0 {
		t.Errorf("%+v", list)
	}
	list := pciJSON(t, m, "-json", "list")
	if len(list) != 4 || len(list[0].Hinders) != 1 || len(list[1].Uses) != 2 || !list[1].NoIOMMU || list[2].Cdev != "vfio0" || list[2].NoIOMMU {
		t.Errorf("%+v", list)
	}
	want := []drive{{Address: "0000:03:00.0", ID: "1b36:0010", Driver: "nvme", Group: 9, Cdev: "vfio0", Uses: []string{}, Hinders: []string{}}}
	if list := pciJSON(t, m, "unbind", "03:00.0", "-json"); !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
}

func TestPCIBind(t *testing.T) {
	m := newFakeMachine()
	var out strings.Builder
	if err := pciOn(t.Context(), m, []string{"bind", "01:00.0", "0000:03:00.0"}, &out); err != nil {
		t.Fatal(err)
	}
	if err := pciOn(t.Context(), m, []string{"unbind", "0000:01:00.0"}, &out); err != nil {
		t.Fatal(err)
	}
	want := `0000:01:00.0 is bound to vfio-pci: -target pcie:0000:01:00.0
0000:03:00.0 is bound to vfio-pci: -target pcie:0000:03:00.0
0000:01:00.0 is bound to nvme
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}

func TestPCIErrors(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"", exitUsage, []string{"list, bind or unbind"}},
		{"frob", exitUsage, []string{"pci frob", "list"}},
		{"list 01:00.0", exitUsage, []string{"01:00.0"}},
		{"bind", exitUsage, []string{"bind ADDRESS", "0000:01:00.0"}},
		{"unbind -json", exitUsage, []string{"unbind ADDRESS"}},
		{"list -jsn", exitUsage, []string{"-jsn", "-json"}},
		{"bind nvme0", exitFailed, []string{"nvme0", "pci list"}},
		{"bind 0f:00.0", exitFailed, []string{"0000:0f:00.0", "pci list"}},
		{"bind 01:00.0 02:00.0", exitFailed, []string{"nvme1n1p2 is mounted at /", "cannot be forced"}},
		{"bind 05:00.0", exitFailed, []string{"driver_override", "run as root"}},
	} {
		m := newFakeMachine()
		var out, errs strings.Builder
		code := report(&errs, pciOn(t.Context(), m, strings.Fields(tt.args), &out))
		if code != tt.code {
			t.Errorf("%s: exit status %d, want %d", tt.args, code, tt.code)
		}
		checkLine(t, errs.String(), tt.want)
		if done := strings.Contains(out.String(), "01:00.0 is bound"); done != strings.Contains(tt.args, "01:00.0 02") {
			t.Errorf("%s: output %q", tt.args, &out)
		}
	}
	for err, want := range map[error]string{
		fmt.Errorf("%w (x)", pcie.ErrNoIOMMU):   "docs/real-drive.md",
		fmt.Errorf("%w: x", pcie.ErrNoDriver):   "modprobe nvme",
		fmt.Errorf("%w: x", pcie.ErrNotNVMe):    "pci list",
		&pcie.ModuleError{Module: "vfio-pci"}:   "modprobe vfio-pci",
		fmt.Errorf("a\nb %w", fs.ErrPermission): "a b permission",
	} {
		checkLine(t, "bench: "+bindError(err).Error()+"\n", []string{want})
	}
}

// On this machine, whatever it has.
func TestPCIHere(t *testing.T) {
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"pci", "list"}, &out, &errs); code != exitOK || out.Len() == 0 {
		t.Errorf("exit status %d, %s", code, &errs)
	}
	out.Reset()
	if code := run(t.Context(), []string{"pci", "-h"}, &out, &errs); code != exitOK || !strings.Contains(out.String(), "bench pci unbind") {
		t.Errorf("exit status %d, %s", code, &out)
	}
}
