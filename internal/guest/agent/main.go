//go:build linux

// Agent is the init of a test guest. As process 1 it mounts the kernel's file
// systems, starts itself a second time as the server, and collects orphans. The
// server loads modules, brings the network up, and carries out the requests of
// the host (package wire). When the server ends, the machine powers off; the
// server ends when the host has gone.
package main

import (
	"fmt"
	"os"

	"github.com/qpoll/qpoll/internal/sys/pid1"
)

const serverArg = "serve"

func main() {
	if len(os.Args) > 1 && os.Args[1] == serverArg {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "guest-agent: serve:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest-agent: this program is the init of a test guest")
		os.Exit(2)
	}
	if err := initMain(); err != nil {
		fmt.Println("guest-agent:", err)
	}
	fmt.Println("guest-agent: power off")
	fmt.Println("guest-agent:", pid1.PowerOff())
}

func initMain() error {
	if err := mountAll(); err != nil {
		return err
	}
	p, err := os.StartProcess("/init", []string{"/init", serverArg}, &os.ProcAttr{
		Env:   []string{"PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/root", "TMPDIR=/tmp"},
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	ws, err := pid1.Reap(p.Pid)
	if err != nil {
		return err
	}
	if ws.Signaled() || ws.ExitStatus() != 0 {
		return fmt.Errorf("server ended: wait status %#x", uint32(ws))
	}
	return nil
}

// mountAll mounts what every guest has. The debug file system is optional.
func mountAll() error {
	for _, m := range []struct{ fstype, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"},
		{"tmpfs", "/tmp"}, {"tmpfs", "/run"},
		{"debugfs", "/sys/kernel/debug"},
	} {
		err := pid1.Mount(m.fstype, m.dir)
		if err != nil && m.fstype != "debugfs" {
			return err
		}
	}
	return nil
}
