//go:build linux

// Command guestio does I/O in a test guest that busybox cannot.
//
//	guestio load DEVICE JOBS BYTES      verifying load on the first BYTES, until SIGTERM
//	guestio zero DEVICE OFFSET LENGTH   Write Zeroes
//	guestio admin DEVICE OPCODE NSID CDW10 CDW11 LENGTH
//	                                    admin command; LENGTH bytes of data come
//	                                    on standard output
//
// Numbers may be hexadecimal. An admin command that fails prints its status on
// standard error, and the exit code is 2.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/qpoll/qpoll/internal/sys/blkdev"
)

// errUsage is for arguments that make no sense.
var errUsage = errors.New("usage: guestio load|zero|admin DEVICE NUMBERS")

func main() {
	err := run(os.Args[1:])
	var st statusError
	switch {
	case errors.As(err, &st):
		fmt.Fprintln(os.Stderr, st)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	var n []uint64
	for _, a := range args[2:] {
		v, err := strconv.ParseUint(a, 0, 64)
		if err != nil {
			return err
		}
		n = append(n, v)
	}
	switch {
	case args[0] == "load" && len(n) == 2:
		return load(args[1], int(n[0]), n[1])
	case args[0] == "zero" && len(n) == 2:
		return zero(args[1], n[0], n[1])
	case args[0] == "admin" && len(n) == 5:
		return admin(args[1], n)
	}
	return errUsage
}

func zero(path string, off, length uint64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return blkdev.ZeroOut(f, off, length)
}

// statusError is an NVMe status.
type statusError uint16

func (s statusError) Error() string { return fmt.Sprintf("%#x", uint16(s)) }

func admin(path string, n []uint64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	c := blkdev.Command{
		Opcode: uint8(n[0]), NSID: uint32(n[1]), CDW10: uint32(n[2]), CDW11: uint32(n[3]), Data: make([]byte, n[4]),
	}
	st, _, err := blkdev.Admin(f, c)
	switch {
	case err != nil:
		return err
	case st != 0:
		return statusError(st)
	}
	_, err = os.Stdout.Write(c.Data)
	return err
}
