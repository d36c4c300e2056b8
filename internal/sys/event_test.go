package sys

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func eventFD(t testing.TB) int {
	t.Helper()
	fd, err := EventFD()
	must(t, err)
	return closeAfter(t, fd)
}

func TestEventFD(t *testing.T) {
	fd := eventFD(t)
	if n, err := EventDrain(fd); n != 0 || err != unix.EAGAIN {
		t.Errorf("new: %d, %v", n, err)
	}
	for range 3 {
		if err := EventSignal(fd); err != 0 {
			t.Fatal(err)
		}
	}
	if n, err := EventDrain(fd); n != 3 || err != 0 {
		t.Errorf("after three signals: %d, %v", n, err)
	}
	if err := EventSignal(-1); err != unix.EBADF {
		t.Errorf("%v, want EBADF", err)
	}
	if _, err := EventDrain(-1); err != unix.EBADF {
		t.Errorf("%v, want EBADF", err)
	}
}

func TestPpoll(t *testing.T) {
	fd := eventFD(t)
	fds := []PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: -1}}
	for _, timeout := range []time.Duration{0, 1} {
		if n, err := Ppoll(fds, timeout); n != 0 || err != 0 {
			t.Errorf("with nothing ready, for %v: %d, %v", timeout, n, err)
		}
	}
	EventSignal(fd)
	for _, timeout := range []time.Duration{-1, 0, patient} {
		if n, err := Ppoll(fds, timeout); n != 1 || err != 0 || fds[0].Revents != unix.POLLIN {
			t.Errorf("ready, for %v: %d, %v, events %#x", timeout, n, err, fds[0].Revents)
		}
	}
}

func TestEpoll(t *testing.T) {
	ep, err := EpollCreate()
	must(t, err)
	closeAfter(t, ep)
	fd := eventFD(t)
	must(t, EpollAdd(ep, fd, unix.EPOLLIN))
	events := make([]EpollEvent, 4)
	wait := func(name string, want int) {
		t.Helper()
		if n, err := EpollTake(ep, events); n != want || err != 0 {
			t.Errorf("%s: took %d, %v; want %d", name, n, err, want)
		}
		if n, err := EpollWait(ep, events, 0); n != want || err != 0 {
			t.Errorf("%s: %d, %v; want %d", name, n, err, want)
		}
	}
	wait("nothing", 0)
	EventSignal(fd)
	wait("signalled", 1)
	if n, err := EpollWait(ep, events, patient); n != 1 || err != 0 || events[0].Fd != int32(fd) {
		t.Errorf("%d, %v: %+v", n, err, events[0])
	}
	must(t, EpollModify(ep, fd, 0))
	wait("masked", 0)
	must(t, EpollModify(ep, fd, unix.EPOLLIN))
	wait("unmasked", 1)
	must(t, EpollDelete(ep, fd))
	wait("deleted", 0)
	if _, err := EpollWait(-1, events, 0); err != unix.EBADF {
		t.Errorf("%v, want EBADF", err)
	}
	if _, err := EpollTake(-1, events); err != unix.EBADF {
		t.Errorf("%v, want EBADF", err)
	}
}
