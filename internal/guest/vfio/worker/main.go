//go:build linux

// Command worker drives NVMe controllers in a test guest through vfio.
//
//	worker list               the functions, as JSON
//	worker bind ADDRESS       gives the function to vfio-pci
//	worker giveback ADDRESS   gives it back to the kernel
//	worker device ADDRESS [group|cdev|noiommu]
//	                          tests the device below the driver
//	worker drive ADDRESS TEST...
//	                          tests the controller with the driver
//	worker shared ADDRESS ADDRESS
//	                          tests two controllers of one subsystem
//	worker hold ADDRESS       opens the function and reads registers until it is
//	                          gone; closes it at the end of standard input
//
// A test that fails prints why on standard error, and the exit code is 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/qpoll/qpoll/pcie"
)

var errUsage = errors.New("usage: worker list|bind|giveback|device|hold|drive|shared [ADDRESS] [TEST...]")

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var host pcie.Host
	if len(args) == 1 && args[0] == "list" {
		all, err := host.Functions()
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	if len(args) < 2 {
		return errUsage
	}
	address := args[1]
	switch args[0] {
	case "bind":
		return host.Bind(ctx, address)
	case "giveback":
		return host.GiveBack(ctx, address)
	case "device":
		return testDevice(ctx, address, args[2:])
	case "hold":
		return hold(ctx, address)
	case "drive":
		return testDrives(ctx, address, args[2:])
	case "shared":
		if len(args) != 3 {
			return errUsage
		}
		return testShared(ctx, address, args[2])
	}
	return errUsage
}
