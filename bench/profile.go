package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime/pprof"
)

// cpuProfile is a CPU profile of the time measured, if one was asked for.
type cpuProfile struct {
	file    *output
	running bool
	samples bytes.Buffer
}

// startProfile opens the file. Sampling starts with begin.
func startProfile(name string) (*cpuProfile, error) {
	p := &cpuProfile{}
	if name == "" {
		return p, nil
	}
	var err error
	if p.file, err = openOutput(name); err != nil {
		return nil, usagef("-cpuprofile: %v: give a file that can be written", err)
	}
	return p, nil
}

func (p *cpuProfile) begin() error {
	if p.file == nil {
		return nil
	}
	if err := pprof.StartCPUProfile(&p.samples); err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	p.running = true
	return nil
}

func (p *cpuProfile) end() {
	if p.running {
		p.running = false
		pprof.StopCPUProfile()
	}
}

// finish writes the file, and a short table on out.
func (p *cpuProfile) finish(out io.Writer) error {
	if p.file == nil || p.samples.Len() == 0 {
		return nil
	}
	if err := p.file.replace(p.samples.Bytes()); err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	if err := printShares(out, p.samples.Bytes()); err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	fmt.Fprintf(out, "go tool pprof -http : %s shows the rest\n", p.file.Name())
	return nil
}

// abandon ends what is not finished; after finish it does nothing.
func (p *cpuProfile) abandon() {
	p.end()
	if p.file != nil {
		p.file.abandon()
	}
}
