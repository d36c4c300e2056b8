package sys

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRights(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	sent := Rights(int(w.Fd()), int(w.Fd()))
	must(t, unix.Sendmsg(pair[0], []byte{1}, sent, nil, 0))
	must(t, w.Close())
	oob := make([]byte, RightsSpace(2))
	b := make([]byte, 1)
	_, n, flags, _, err := unix.Recvmsg(pair[1], b, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || flags&unix.MSG_CTRUNC != 0 {
		t.Fatal(flags, err)
	}
	fds, err := ParseRights(oob[:n])
	if err != nil || len(fds) != 2 {
		t.Fatalf("%v, %v", fds, err)
	}
	// Both lead to the pipe.
	for i, fd := range fds {
		_, err := unix.Write(fd, []byte{byte('a' + i)})
		must(t, err)
		must(t, Close(fd))
	}
	got := make([]byte, 2)
	if n, err := r.Read(got); n != 2 || string(got) != "ab" {
		t.Fatalf("%q, %v", got[:n], err)
	}
}

func TestRightsNone(t *testing.T) {
	if b := Rights(); b != nil {
		t.Errorf("control message %x for no descriptors", b)
	}
	if fds, err := ParseRights(nil); fds != nil || err != nil {
		t.Errorf("%v, %v", fds, err)
	}
	if _, err := ParseRights([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}); err == nil {
		t.Error("no error for garbage")
	}
	cred := unix.UnixCredentials(&unix.Ucred{Pid: 1})
	if _, err := ParseRights(cred); !errors.Is(err, ErrControl) {
		t.Errorf("credentials: %v", err)
	}
}
