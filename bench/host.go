package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/qpoll/qpoll/internal/tsc"
)

// host is the machine that a result was measured on: what makes two results
// comparable, or not.
type host struct {
	Processor  string  `json:"processor"`            // the brand, or the vendor and architecture
	Hypervisor string  `json:"hypervisor,omitempty"` // what the machine runs under, as that calls itself
	Arch       string  `json:"arch"`
	CPUs       int     `json:"cpus"`    // that the process may use
	CRC32C     bool    `json:"crc32c"`  // the processor computes digests itself
	TSCHz      float64 `json:"tsc_hz"`  // rate of the counter that is the clock; 0: CLOCK_MONOTONIC is
	Runtime    string  `json:"runtime"` // the Go release
}

// thisHost describes the machine.
func thisHost() host {
	c := cpuid.CPU
	h := host{
		Processor: strings.Join(strings.Fields(c.BrandName), " "), Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		CRC32C: c.Has(cpuid.SSE42) || c.Has(cpuid.CRC32), TSCHz: float64(tsc.Frequency()), Runtime: runtime.Version(),
	}
	if h.Processor == "" {
		h.Processor = strings.TrimSpace(c.VendorString + " " + runtime.GOARCH)
	}
	if c.Has(cpuid.HYPERVISOR) {
		h.Hypervisor = c.HypervisorVendorID.String()
		if c.HypervisorVendorID == cpuid.VendorUnknown {
			h.Hypervisor = strings.Trim(c.HypervisorVendorString, " \x00")
		}
	}
	return h
}

// String is one line for people.
func (h host) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", h.Processor, plural(h.CPUs, "CPU"))
	if h.Hypervisor != "" {
		fmt.Fprintf(&b, " under %s", h.Hypervisor)
	}
	if h.TSCHz == 0 {
		b.WriteString(", no invariant counter: the clock is slower")
	}
	if !h.CRC32C {
		b.WriteString(", no CRC32C instruction: digests are slower")
	}
	return b.String()
}
