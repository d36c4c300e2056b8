package main

import (
	"encoding/json"
	"runtime"
	"testing"

	syscpu "golang.org/x/sys/cpu"
)

func TestHost(t *testing.T) {
	h := thisHost()
	if h.Processor == "" || h.CPUs != runtime.NumCPU() || h.Arch != runtime.GOARCH {
		t.Fatalf("%+v", h)
	}
	// A second opinion.
	if want := syscpu.X86.HasSSE42 || syscpu.ARM64.HasCRC32; want != h.CRC32C {
		t.Errorf("CRC32C is %v, want %v", h.CRC32C, want)
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var back host
	if err := json.Unmarshal(b, &back); err != nil || back != h {
		t.Errorf("%s became %+v, %v", b, back, err)
	}
}

func TestHostLine(t *testing.T) {
	for _, tt := range []struct {
		h    host
		want string
	}{
		{host{Processor: "X 1", CPUs: 1, TSCHz: 1e9, CRC32C: true}, "X 1, 1 CPU"},
		{host{Processor: "X 1", CPUs: 2, TSCHz: 1e9, CRC32C: true, Hypervisor: "KVM"}, "X 1, 2 CPUs under KVM"},
		{host{Processor: "X 1", CPUs: 2}, "X 1, 2 CPUs, no invariant counter: the clock is slower, no CRC32C instruction: digests are slower"},
	} {
		if got := tt.h.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
