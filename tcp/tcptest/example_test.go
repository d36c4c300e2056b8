package tcptest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/qpoll/qpoll/nvme"
	_ "github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/tcptest"
)

// A controller that behaves well, but for one thing: it cannot read block 5.
func Example() {
	ns := tcptest.NewNamespace(1024, 512)
	ctrl := &tcptest.Controller{
		Override: func(r *tcptest.Request) bool {
			if lba, _ := tcptest.LBA(&r.Cmd); r.Queue == 0 || r.Cmd.Opcode != nvme.OpRead || lba != 5 {
				return false
			}
			r.Complete(nvme.StatusUnrecoveredReadError|nvme.StatusDNR, 0)
			return true
		},
	}
	ctrl.AddNamespace(1, ns)
	srv, err := tcptest.Start(ctrl.Serve, nil) // in a test: tcptest.NewController
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := nvme.Open(ctx, srv.Address("nqn.2014-08.org.example:disk"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	disk, err := c.Namespace(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	buf := make([]byte, 512)
	_, err = disk.ReadAt(buf, 4*512)
	fmt.Println("block 4:", err)
	_, err = disk.ReadAt(buf, 5*512)
	fmt.Println("block 5:", errors.Is(err, nvme.StatusUnrecoveredReadError))
	// Output:
	// block 4: <nil>
	// block 5: true
}
