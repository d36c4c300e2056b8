package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// serveOptions are what the user has chosen for serving.
type serveOptions struct {
	listen    addresses
	nqn       string
	hosts     names
	backend   string
	capacity  size
	file      string
	block     size
	inCapsule size
	header    string // digests
	data      string
	cores     coreList
	adaptive  bool
	socketDir string // of vfio-user; empty: NVMe/TCP
}

const serveIntro = `Usage: bench target [flags]   serve memory to NVMe/TCP hosts until Ctrl-C
       bench target -vfio-user DIR [flags]   serve a PCIe controller in software
                              to a driver of another process

It prints the address that bench -target and other initiators take.`

// The words for target.Digest, by its values.
var digestWords = []string{"allow", "require", "decline"}

func (o *serveOptions) flags() *flagSet {
	f := newFlagSet("bench target", serveIntro)
	f.heading("What to serve")
	f.value(&o.listen, "listen", "`address`:port to listen at, or several with commas between; port 0 is one that is free")
	f.value(text{&o.socketDir}, "vfio-user", "`directory` of the vfio-user socket (cntrl) to serve a PCIe controller through, in place of NVMe/TCP; drivers take turns")
	f.value(text{&o.nqn}, "nqn", "`name` of the subsystem")
	f.value(&o.hosts, "hosts", "`names` (NQNs) of the hosts that may connect, with commas between; by default all")
	f.value(choice{&o.backend, []string{"memory", "null", "file", "ideal"}}, "backend", "`kind` of namespace: memory, null, which keeps nothing, or file; and with -vfio-user ideal, where commands complete unread, so that what is left is the driver")
	f.value(&o.capacity, "size", "`size` of the namespace; 0 with a file is that of the file")
	f.value(text{&o.file}, "file", "`path` of the file for -backend file")
	f.value(&o.block, "block", "`size` of a logical block")
	f.heading("How")
	f.value(&o.inCapsule, "in-capsule", "`size` of the largest data within a command capsule; 0 is none")
	f.value(choice{&o.header, digestWords}, "hdgst", "`policy` for header digests: allow, require or decline")
	f.value(choice{&o.data, digestWords}, "ddgst", "`policy` for data digests")
	f.value(&o.cores, "cores", "`set` of cores to serve on; by default the last that is allowed")
	f.value(toggle{&o.adaptive}, "adaptive", "sleep when there is nothing to do, in place of polling on")
	return f
}

// serve is the command that serves.
func serve(ctx context.Context, args []string, stdout, _ io.Writer) error {
	o := &serveOptions{
		listen: addresses{netip.MustParseAddrPort("127.0.0.1:4420")}, nqn: target.DefaultNQN,
		backend: "memory", capacity: 256 << 20, block: 512, inCapsule: 16 << 10,
		header: digestWords[0], data: digestWords[0],
	}
	f := o.flags()
	if err := f.parse(args, stdout); err != nil {
		return err
	}
	if err := o.check(f.given()); err != nil {
		return err
	}
	allowed, err := poller.AllowedCores()
	if err != nil {
		return err
	}
	l, err := (&options{cores: o.cores}).plan(allowed)
	if err != nil {
		return err
	}
	if len(o.cores) == 0 {
		l.load = allowed[len(allowed)-1:]
	}
	defer l.processors()()
	if o.socketDir != "" {
		return o.runDevice(ctx, &l, stdout)
	}
	return o.run(ctx, &l, stdout)
}

// check refuses what does not go together.
func (o *serveOptions) check(given map[string]bool) error {
	switch {
	case o.backend == "ideal" && o.socketDir == "":
		return usagef("-backend ideal goes with -vfio-user")
	case (o.backend == "file") != given["file"]:
		return usagef("-backend file and -file go together")
	case o.capacity == 0 && o.backend != "file":
		return usagef("-size 0 holds nothing: write -size 256m")
	case o.capacity > 1<<50:
		return usagef("-size %s is too large, 1024 TiB is the most", &o.capacity)
	case o.block < 512 || o.block > 64<<10 || o.block&(o.block-1) != 0:
		return usagef("-block %s is not possible, it is a power of two from 512 to 64k", &o.block)
	case o.capacity%o.block != 0:
		return usagef("-size %s is not a multiple of -block %s", &o.capacity, &o.block)
	case o.inCapsule > 1<<20 || o.inCapsule%16 != 0:
		return usagef("-in-capsule %s is not possible, it is a multiple of 16 up to 1m", &o.inCapsule)
	}
	for _, nqn := range append([]string{o.nqn}, o.hosts...) {
		if err := nvme.CheckNQN(nqn); err != nil {
			return usagef("%s; write it like nqn.2014-08.org.example:disk", trimKind(err))
		}
	}
	if o.backend == "file" && !given["size"] {
		o.capacity = 0
	}
	if o.socketDir != "" {
		return o.checkDevice(given)
	}
	return nil
}

func (o *serveOptions) run(ctx context.Context, l *layout, out io.Writer) error {
	b, err := newBackend(o.backend, o.capacity, o.file)
	if err != nil {
		return fmt.Errorf("%s: give another -file or -size", oneLine(err.Error()))
	}
	p := poller.Config{Name: "target"}
	if o.adaptive {
		p.Idle = poller.Adaptive
	}
	s, err := startServer(o.config(b), l.load, p)
	if err != nil {
		return serveError(err)
	}
	for _, port := range s.Ports() {
		a := port.Addr()
		fmt.Fprintf(out, "-target \"trtype:tcp traddr:%s trsvcid:%d subnqn:%s\"\n", a.Addr(), a.Port(), o.nqn)
	}
	fmt.Fprintf(out, "%s on %s, Ctrl-C ends it\n", o.backend, coreNames(l.load))
	<-ctx.Done()
	st := s.Subsystem(o.nqn).Stats()
	err = s.close()
	fmt.Fprintf(out, "served %d reads, %d writes, %d others, %d errors\n", st.Reads, st.Writes, st.Others, st.Errors)
	return err
}

// config is what the options say about the target.
func (o *serveOptions) config(b backend.Backend) target.Config {
	cfg := target.Config{
		Subsystems: []target.SubsystemConfig{{
			NQN: o.nqn, Hosts: o.hosts,
			Namespaces: []target.NamespaceConfig{{NSID: 1, BlockSize: uint32(o.block), Backend: b}},
		}},
		Transport: target.Transport{
			InCapsule:    int(o.inCapsule),
			HeaderDigest: target.Digest(slices.Index(digestWords, o.header)),
			DataDigest:   target.Digest(slices.Index(digestWords, o.data)),
		},
	}
	if o.inCapsule == 0 {
		cfg.Transport.InCapsule = -1
	}
	for _, a := range o.listen {
		cfg.Ports = append(cfg.Ports, target.PortConfig{Address: a})
	}
	return cfg
}

// serveError says what to type in place of what did not work.
func serveError(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = ": another program listens there, give another -listen"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = ": this host has no such address, give another -listen"
	case errors.Is(err, syscall.EACCES):
		hint = ": give -listen a port of 1024 or more"
	}
	return errors.New(oneLine(err.Error()) + hint)
}

// addresses is a list of where to listen.
type addresses []netip.AddrPort

// Set implements flag.Value.
func (a *addresses) Set(text string) error {
	var list addresses
	for item := range strings.SplitSeq(text, ",") {
		full := item
		if strings.HasPrefix(item, ":") {
			full = "0.0.0.0" + item
		}
		p, err := netip.ParseAddrPort(full)
		if err != nil {
			return fmt.Errorf("%q is not an address with a port: write 127.0.0.1:4420, [::1]:4420 or :4420", item)
		}
		list = append(list, p)
	}
	*a = list
	return nil
}

// String implements flag.Value.
func (a *addresses) String() string {
	var parts []string
	for _, p := range *a {
		parts = append(parts, p.String())
	}
	return strings.Join(parts, ",")
}

// names is a list of names.
type names []string

// Set implements flag.Value.
func (n *names) Set(text string) error {
	*n = strings.Split(text, ",")
	return nil
}

// String implements flag.Value.
func (n *names) String() string { return strings.Join(*n, ",") }
