package pcie_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

// A drive is taken from the kernel, used and given back. What can be wrong with
// a machine has an error each, whose text says what to do.
func ExampleHost_Bind() {
	const address = "0000:01:00.0"
	ctx := context.Background()
	var machine pcie.Host
	if err := machine.Bind(ctx, address); err != nil { // needs root
		fmt.Println(err)
		return
	}
	defer machine.GiveBack(ctx, address)
	ctrl, err := nvme.Open(ctx, "trtype:pcie traddr:"+address, &nvme.Config{
		Transport: pcie.Config{Interrupts: true}, // for pollers that may sleep
	})
	var locked *pcie.MemlockError
	switch {
	case errors.As(err, &locked):
		fmt.Println("raise the limit to", locked.Need)
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	defer ctrl.Close(ctx)
	fmt.Println(ctrl.Identify().ModelNumber())
}
