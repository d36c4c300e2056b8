package target_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	_ "github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// A program serves memory to itself.
func Example() {
	p, err := poller.New(poller.Config{Unpinned: true, Idle: poller.Adaptive})
	check(err)
	t, err := target.New(target.Config{}) // 64 MiB of memory, on a free port
	check(err)
	check(p.Start())
	check(t.Start(p))

	ctx := context.Background()
	c, err := nvme.Open(ctx, t.Address(""), nil)
	check(err)
	ns, err := c.Namespace(ctx, 1)
	check(err)
	fmt.Println(ns.Size()>>20, "MiB")

	check(c.Close(ctx))
	check(t.Close())
	check(p.Close())
	// Output: 64 MiB
}

// A test makes reads slow, and some of them fail, while its program runs.
func Example_faults() {
	fail := backend.NewFail(backend.NewHeap(1 << 20))
	slow := backend.NewLatency(fail, 0)
	t, err := target.New(target.Config{Subsystems: []target.SubsystemConfig{{
		NQN:        target.DefaultNQN,
		Namespaces: []target.NamespaceConfig{{Backend: slow}},
	}}})
	check(err)

	slow.Set(30 * time.Millisecond)
	fail.Set(backend.Fault{Kinds: []backend.Kind{backend.Read}, Fraction: 0.01, Status: nvme.StatusUnrecoveredReadError})

	fmt.Println(fail.Failed())
	check(t.Close())
	// Output: 0
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
