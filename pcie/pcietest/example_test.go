package pcietest_test

import (
	"context"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/pcie/pcietest"
)

// A program that uses a drive, tested without one.
func Example() {
	c, err := pcietest.New(pcietest.Config{Model: "a drive"})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	c.Start()
	ctx := context.Background()
	t, err := pcie.New(c.Device(), nil)
	if err != nil {
		panic(err)
	}
	ctrl, err := nvme.NewController(ctx, t, nil)
	if err != nil {
		panic(err)
	}
	defer ctrl.Close(ctx)
	ns, err := ctrl.Namespace(ctx, 1)
	if err != nil {
		panic(err)
	}
	_, err = ns.WriteAt(make([]byte, 4096), 0)
	fmt.Println(ctrl.Identify().ModelNumber(), ns.Size(), err)
	// From now on, reads fail.
	c.Inject(pcietest.Rule{Action: pcietest.Fail, Status: nvme.StatusUnrecoveredReadError, Match: pcietest.Opcode(nvme.OpRead, false)})
	_, err = ns.ReadAt(make([]byte, 512), 0)
	fmt.Println(err)
	fmt.Println(len(c.Faults()), "accesses to memory that was not mapped")
	// Output:
	// a drive 67108864 <nil>
	// nvme: read of 512 bytes at 0, namespace 1 (pcie pcietest, queue 1): Unrecovered Read Error (sct 0x2, sc 0x81)
	// 0 accesses to memory that was not mapped
}
