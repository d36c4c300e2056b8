//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/qpoll/qpoll/internal/guest/wire"
	"github.com/qpoll/qpoll/internal/sys/pid1"
)

const configfsDir = "/sys/kernel/config"

// setup does what the boot specification asks for and returns the names of the
// modules that it loaded.
func setup() ([]string, error) {
	b, err := os.ReadFile(wire.BootSpecPath)
	if err != nil {
		return nil, err
	}
	var spec wire.BootSpec
	if err := json.Unmarshal(b, &spec); err != nil {
		return nil, fmt.Errorf("%s: %w", wire.BootSpecPath, err)
	}
	// From here on all kernel messages go to the console, where the host looks
	// for complaints; during boot that would cost time.
	for _, f := range []struct{ path, data string }{
		{"/proc/sys/kernel/printk", "8"}, {"/proc/sys/kernel/hostname", "guest"},
	} {
		if err := os.WriteFile(f.path, []byte(f.data), 0o644); err != nil {
			return nil, err
		}
	}
	var loaded []string
	for _, m := range spec.Modules {
		if err := pid1.LoadModule(m.Path, m.Params); err != nil {
			return loaded, err
		}
		loaded = append(loaded, strings.TrimSuffix(filepath.Base(m.Path), ".ko"))
	}
	if err := mountConfigfs(); err != nil {
		return loaded, err
	}
	return loaded, network(spec.Interfaces)
}

// mountConfigfs mounts configfs if the kernel has it by now.
func mountConfigfs() error {
	if _, err := os.Stat(configfsDir); err != nil {
		return nil
	}
	err := pid1.Mount("configfs", configfsDir)
	if errors.Is(err, syscall.EBUSY) {
		return nil
	}
	return err
}

func network(ifs []wire.Interface) error {
	if err := ip("link", "set", "lo", "up"); err != nil {
		return err
	}
	for _, want := range ifs {
		name, err := findInterface(want.MAC)
		if err != nil {
			return err
		}
		if err := ip("addr", "add", want.CIDR, "dev", name); err != nil {
			return err
		}
		if err := ip("link", "set", name, "up"); err != nil {
			return err
		}
		if err := waitCarrier(name); err != nil {
			return err
		}
		if want.Gateway != "" {
			if err := ip("route", "add", "default", "via", want.Gateway); err != nil {
				return err
			}
		}
	}
	// A port of the host forwarded to 127.0.0.1 of the guest arrives from
	// outside; the kernel drops such packets without this.
	return os.WriteFile("/proc/sys/net/ipv4/conf/all/route_localnet", []byte("1"), 0o644)
}

// findInterface waits for the driver to have registered the interface.
func findInterface(mac string) (string, error) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		all, err := net.Interfaces()
		if err != nil {
			return "", err
		}
		for _, i := range all {
			if i.HardwareAddr.String() == mac {
				return i.Name, nil
			}
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("no interface with address %s", mac)
		}
	}
}

// waitCarrier waits for the interface to be able to send.
func waitCarrier(name string) error {
	path := "/sys/class/net/" + name + "/carrier"
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(b)) == "1" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no carrier on %s", name)
		}
	}
}

func ip(args ...string) error {
	out, err := exec.Command("/bin/busybox", append([]string{"ip"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
