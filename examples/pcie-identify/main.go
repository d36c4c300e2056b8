// Command pcie-identify shows what a drive says about itself: its registers, the
// Identify data of the controller and its namespaces, and its health. It writes
// nothing.
//
//	go run ./examples/pcie-identify
//	go run ./examples/pcie-identify "trtype:pcie traddr:0000:01:00.0"
//	go run ./examples/pcie-identify "trtype:vfio-user traddr:/run/disk0"
//
// Without an address it lists the drives of this machine, and runs on a
// controller in software.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/qpoll/qpoll/examples/internal/demo"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

func main() { demo.Main(run) }

func run(args []string, out io.Writer) (err error) {
	ctx := context.Background()
	if len(args) == 0 {
		if err := list(pcie.Host{}, out); err != nil {
			return err
		}
	}
	ctrl, stop, err := demo.Controller(ctx, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ctrl.Close(ctx), stop()) }()
	for _, show := range []func(context.Context, *nvme.Controller, io.Writer) error{controller, namespaces, health} {
		if err := show(ctx, ctrl, out); err != nil {
			return err
		}
	}
	return nil
}

// list shows the drives of a machine and who has them.
func list(h pcie.Host, out io.Writer) error {
	functions, err := h.Functions()
	if err != nil {
		return err
	}
	for _, f := range functions {
		driver := f.Driver
		if driver == "" {
			driver = "no driver"
		}
		fmt.Fprintf(out, "%s  %04x:%04x  %s\n", f.Address, f.Vendor, f.Device, driver)
	}
	return nil
}

func controller(_ context.Context, c *nvme.Controller, out io.Writer) error {
	id, capp := c.Identify(), c.Capabilities()
	nqn, err := id.SubsystemNQN()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", c.Address())
	fmt.Fprintf(out, "  model      %s\n", id.ModelNumber())
	fmt.Fprintf(out, "  serial     %s\n", id.SerialNumber())
	fmt.Fprintf(out, "  firmware   %s\n", id.FirmwareRevision())
	fmt.Fprintf(out, "  subsystem  %s, controller %d\n", nqn, id.CNTLID)
	fmt.Fprintf(out, "  version    %s\n", c.Version())
	fmt.Fprintf(out, "  queues     %d for I/O, of up to %d entries\n", c.IOQueues(), capp.MaxQueueEntries())
	fmt.Fprintf(out, "  transfers  up to %d KiB\n", c.MaxTransfer()>>10)
	fmt.Fprintf(out, "  ready in   %v at most\n", capp.TO())
	return nil
}

func namespaces(ctx context.Context, c *nvme.Controller, out io.Writer) error {
	ids, err := c.ActiveNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, nsid := range ids {
		ns, err := c.Namespace(ctx, nsid)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  namespace %d: %d MiB in %d blocks of %d bytes", nsid, ns.Size()>>20, ns.Blocks(), ns.BlockSize())
		if ns.ReadOnly() {
			fmt.Fprint(out, ", read only")
		}
		fmt.Fprintln(out)
	}
	return nil
}

func health(ctx context.Context, c *nvme.Controller, out io.Writer) error {
	page := make([]byte, 512)
	if err := c.LogPage(ctx, nvme.LogSMART, page, nvme.LogOptions{NSID: nvme.NSIDAll}); err != nil {
		return err
	}
	var s nvme.SMARTLog
	if err := s.UnmarshalBinary(page); err != nil {
		return err
	}
	fmt.Fprintf(out, "  health     %d C, %d %% used, %d %% spare, %s media errors, warnings %#02x\n",
		int(s.Temperature())-273, s.PercentageUsed, s.AvailableSpare, s.MediaErrors, s.CriticalWarning)
	return nil
}
