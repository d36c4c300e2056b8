package guest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestConsoleFaults(t *testing.T) {
	for _, c := range []struct {
		line  string
		fault bool
	}{
		{"[    2.5] Kernel panic - not syncing: sysrq triggered crash", true},
		{"Kernel panic - not syncing: Attempted to kill init!", true},
		{"[   12.345678] BUG: kernel NULL pointer dereference, address: 0000000000000000", true},
		{"[   12.345678][  T123] kernel BUG at drivers/nvme/target/core.c:100!", true},
		{"[    9.502882] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", true},
		{"[    9.502882] Oops: general protection fault, probably for non-canonical address", true},
		{"[    9.502882] WARNING: CPU: 1 PID: 77 at block/blk-mq.c:12 f+0x1/0x2", true},
		{"[    9.502882] WARNING: block/blk-mq.c:12 at f+0x1/0x2, CPU#1: kworker", true},
		{"[    9.502882] INFO: task dd:12 blocked for more than 120 seconds.", true},
		{"[    9.502882] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!", true},
		{"[    9.502882] refcount_t: underflow; use-after-free.", true},
		{"[    9.502882] list_add corruption. prev->next should be next", true},

		{"[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on", false},
		{"[    9.5] nvme nvme0: starting error recovery", false},
		{"[    9.5] I/O error, dev nvme0c0n4, sector 80 op 0x0:(READ) flags 0x2000800", false},
		{"a test wrote: no Oops: here", false},
		{"DEBUG: x", false},
		{"", false},
	} {
		con := newConsole(nil)
		_, _ = con.Write([]byte("before\r\n" + c.line + "\r\nafter\n"))
		var want []string
		if c.fault {
			want = []string{c.line}
		}
		if got := con.Faults(); !slices.Equal(got, want) {
			t.Errorf("%q: got %q", c.line, got)
		}
	}
}

func TestConsoleInPieces(t *testing.T) {
	var tee bytes.Buffer
	con := newConsole(&tee)
	text := "one\n[    1.0] Oops: 0000 [#1]\ntwo without an end"
	for i := range text {
		_, _ = con.Write([]byte{text[i]})
	}
	if got := con.Faults(); len(got) != 1 || got[0] != "[    1.0] Oops: 0000 [#1]" {
		t.Errorf("got %q", got)
	}
	if con.keep.String() != text || tee.String() != text {
		t.Errorf("kept %q, copied %q", con.keep.String(), tee.String())
	}
}

func TestConsoleBounds(t *testing.T) {
	con := newConsole(nil)
	long := strings.Repeat("x", 3*maxLine)
	_, _ = con.Write([]byte("Oops: " + long + "\n" + strings.Repeat("Oops: again\n", 2*maxFaults)))
	f := con.Faults()
	if len(f) != maxFaults || len(f[0]) != maxLine {
		t.Errorf("%d faults, the first with %d bytes", len(f), len(f[0]))
	}
	for range 5 {
		_, _ = con.Write(bytes.Repeat([]byte("0123456789abcde\n"), maxConsole/16))
	}
	s := con.keep.String()
	if len(s) > 2*maxConsole+len("[...]") || !strings.HasPrefix(s, "[...]") || !strings.HasSuffix(s, "abcde\n") {
		t.Errorf("%d bytes are kept", len(s))
	}
}

func TestBatchString(t *testing.T) {
	var b Batch
	b.Mkdir("/a")
	b.MkdirAll("/a/b/c")
	b.Write("/a/x", "1\n")
	b.Symlink("/a", "/l")
	b.Remove("/l")
	b.RemoveAll("/a")
	want := "mkdir /a\nmkdirall /a/b/c\nwrite /a/x \"1\\n\"\nsymlink /l -> /a\nremove /l\nremoveall /a\n"
	if got := b.String(); got != want || b.Len() != 6 {
		t.Errorf("got %q", got)
	}
}
