package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/qpoll/qpoll/pcie/pcietest"
	"github.com/qpoll/qpoll/poller"
)

// checkDevice refuses what does not go with -vfio-user.
func (o *serveOptions) checkDevice(given map[string]bool) error {
	for _, name := range []string{"listen", "hosts", "in-capsule", "hdgst", "ddgst"} {
		if given[name] {
			return usagef("-%s is for NVMe/TCP: leave it out, or leave out -vfio-user", name)
		}
	}
	switch {
	case o.block != 512 && o.block != 4096:
		return usagef("-block %s is not possible with -vfio-user, it is 512 or 4096", &o.block)
	case len(o.cores) > 1:
		return usagef("-cores: the software controller runs on one core, not on %d", len(o.cores))
	}
	return nil
}

// runDevice serves a PCIe controller in software through vfio-user.
func (o *serveOptions) runDevice(ctx context.Context, l *layout, out io.Writer) error {
	ns, disk, err := newDisk(o.backend, o.capacity, o.block, o.file)
	if err != nil {
		return fmt.Errorf("%s: give another -file or -size", oneLine(err.Error()))
	}
	p := poller.Config{Name: "target"}
	if o.adaptive {
		p.Idle = poller.Adaptive
	}
	cfg := pcietest.Config{NQN: o.nqn, Namespaces: []pcietest.NamespaceConfig{ns}, Ideal: o.backend == "ideal"}
	d, err := startDevice(cfg, l.load[0], p, disk)
	if err != nil {
		return serveError(err)
	}
	s, err := listen(o.socketDir)
	if err != nil {
		return errors.Join(socketError(err, o.socketDir), d.close())
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(d.Controller)
	}()
	fmt.Fprintf(out, "-target \"trtype:vfiouser traddr:%s\"\n", s.dir)
	fmt.Fprintf(out, "%s on %s, Ctrl-C ends it\n", o.backend, coreNames(l.load))
	<-ctx.Done()
	st := d.Stats()
	err = errors.Join(s.close(), d.close())
	<-served
	fmt.Fprintf(out, "served %d admin commands, %d reads, %d writes, %d others, %d errors\n", st.Admin, st.Reads, st.Writes, st.Others, st.Errors)
	return err
}

// socket is a unix socket in a directory that drivers of vfio-user know.
type socket struct {
	net.Listener
	dir  string
	made bool // the directory
}

// socketName is what drivers look for in the directory.
const socketName = "cntrl"

// listen makes the socket, and the directory if it is not there. A socket that
// nobody listens at any more is taken over.
func listen(dir string) (*socket, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &socket{dir: dir}
	if err := os.Mkdir(dir, 0o700); err == nil {
		s.made = true
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	path := filepath.Join(dir, socketName)
	s.Listener, err = net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && stale(path) {
		if err = os.Remove(path); err == nil {
			s.Listener, err = net.Listen("unix", path)
		}
	}
	if err != nil {
		s.removeDir()
		return nil, err
	}
	return s, nil
}

// stale tells whether a socket is one that nobody listens at.
func stale(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (s *socket) removeDir() {
	if s.made {
		_ = os.Remove(s.dir)
	}
}

// serve gives the controller to one driver after the other, until the socket is
// closed. What a driver does wrong ends its connection, no more.
func (s *socket) serve(c *pcietest.Controller) {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		_ = c.ServeConn(conn.(*net.UnixConn))
	}
}

func (s *socket) close() error {
	err := s.Listener.Close()
	s.removeDir()
	return err
}

// socketError says what to type in place of a directory that did not work.
func socketError(err error, dir string) error {
	hint := "give another -vfio-user"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = fmt.Sprintf("another program serves there, or %s is no socket: give another -vfio-user", filepath.Join(dir, socketName))
	case errors.Is(err, fs.ErrNotExist):
		hint = "give -vfio-user a directory that is there, or can be made"
	case errors.Is(err, syscall.EINVAL):
		hint = "the name is too long for a socket: give a shorter -vfio-user"
	case errors.Is(err, fs.ErrPermission):
		hint = "give -vfio-user a directory that you may write to"
	}
	return fmt.Errorf("%s: %s", oneLine(err.Error()), hint)
}
