// Guest-assets makes a Debian machine ready for the tests that boot a Linux
// kernel in QEMU: it installs the emulators, and downloads and unpacks a kernel
// and busybox into a cache directory ($QPOLL_GUEST_CACHE, or qpoll/guest in the
// user's cache). It needs root for what is not installed yet, and does nothing
// when all is there.
//
//	go run ./internal/guest/cmd/guest-assets
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/qpoll/qpoll/internal/guest/assets"
)

func main() {
	refresh := flag.Bool("refresh", false, "take the newest kernel even if there is one in the cache")
	timeout := flag.Duration("timeout", 15*time.Minute, "give up after this time")
	flag.Parse()
	if err := run(*refresh, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "guest-assets:", err)
		os.Exit(1)
	}
}

func run(refresh bool, timeout time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	set, err := assets.Prepare(ctx, assets.Options{Log: os.Stderr, Refresh: refresh})
	if err != nil {
		return err
	}
	fmt.Println("kernel", set.Release, "version", set.Version, "at", set.Kernel())
	return nil
}
