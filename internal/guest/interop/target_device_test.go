//go:build guest

package interop

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/guest/nvmehost"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// queueAttr reads an attribute of the request queue of a device.
func (k *kernelHost) queueAttr(t *testing.T, dev, name string) string {
	t.Helper()
	v, err := k.g.ReadAttr(t.Context(), "/sys/block/"+filepath.Base(dev)+"/queue/"+name)
	check(t, err)
	return v
}

// testFileSystem makes a file system, fills it, and finds everything after it
// was mounted anew.
func testFileSystem(t *testing.T, k *kernelHost) {
	s := k.simple(t)
	// Without data digests: ext4 changes metadata while it is being written, so
	// that some writes arrive with a wrong one and are made again.
	s.connectAll(t, nvmehost.ConnectConfig{HeaderDigest: true})
	dev := s.device(t, 1)
	before := s.sub.Stats()
	k.g.Shell(t, "dev="+dev+`
		mke2fs -q $dev 2>/dev/null >/dev/null
		mkdir -p /tmp/mnt
		mount -t ext4 $dev /tmp/mnt
		cd /tmp/mnt
		for i in 1 2 3 4 5 6 7 8 9; do
			mkdir d$i
			dd if=/tmp/random of=d$i/f bs=10007 skip=$i count=40 2>/dev/null
			for j in 1 2 3 4 5; do echo $i $j >d$i/small$j; done
		done
		rm -r d3 d7
		find . -type f | sort | xargs md5sum >/tmp/sums
		cd /
		sync
		umount /tmp/mnt
		echo 3 >/proc/sys/vm/drop_caches
		mount -t ext4 $dev /tmp/mnt
		cd /tmp/mnt
		md5sum -c /tmp/sums >/tmp/checked || { cat /tmp/checked; exit 1; }
		test $(wc -l </tmp/sums) = 42
		cd /
		fstrim /tmp/mnt
		cd /tmp/mnt
		md5sum -c /tmp/sums >/dev/null
		cd /
		umount /tmp/mnt`)
	after := s.sub.Stats()
	if after.Others == before.Others {
		t.Error("no Dataset Management command has come of fstrim")
	}
	if after.Errors != before.Errors {
		t.Errorf("%d commands have failed", after.Errors-before.Errors)
	}
}

// testFileBackend serves a file, which has a volatile write cache.
func testFileBackend(t *testing.T, k *kernelHost) {
	path := filepath.Join(t.TempDir(), "disk")
	file, err := backend.NewFile(backend.FileConfig{Path: path, Size: 16 << 20})
	check(t, err)
	s := k.serve(t, target.SubsystemConfig{Namespaces: []target.NamespaceConfig{{Backend: file, BlockSize: 4096}}}, target.Transport{})
	s.connect(t, 0, nvmehost.ConnectConfig{HeaderDigest: true})
	dev := s.device(t, 1)
	if wc, fua := k.queueAttr(t, dev, "write_cache"), k.queueAttr(t, dev, "fua"); wc != "write back" || fua != "1" {
		t.Errorf("write cache %q, FUA %q", wc, fua)
	}
	if bs := k.queueAttr(t, dev, "logical_block_size"); bs != "4096" {
		t.Errorf("blocks of %s bytes", bs)
	}
	before := s.sub.Stats()
	k.g.Shell(t, "dev="+dev+`
		dd if=/tmp/random of=$dev bs=4k count=100 oflag=direct 2>/dev/null
		dd if=/tmp/random of=$dev bs=1M seek=2 conv=fsync 2>/dev/null
		dd if=$dev bs=4k count=100 iflag=direct 2>/dev/null | cmp -n 409600 - /tmp/random
		dd if=$dev bs=512k skip=4 count=8 iflag=direct 2>/dev/null | cmp - /tmp/random`)
	if after := s.sub.Stats(); after.Others == before.Others {
		t.Error("no Flush has come of fsync")
	}
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	sum := md5.New()
	_, err = io.Copy(sum, io.NewSectionReader(f, 2<<20, 4<<20))
	check(t, err)
	want, _, _ := strings.Cut(k.g.Shell(t, "md5sum </tmp/random"), " ")
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("the file has %s, the guest wrote %s", got, want)
	}
}

// testDiscard deallocates and writes zeroes.
func testDiscard(t *testing.T, k *kernelHost) {
	s := k.simple(t)
	s.connect(t, 0, nvmehost.ConnectConfig{})
	dev := s.device(t, 1)
	if wc := k.queueAttr(t, dev, "write_cache"); wc != "write through" {
		t.Errorf("write cache of memory: %q", wc)
	}
	for _, a := range []string{"discard_max_bytes", "write_zeroes_max_bytes"} {
		if v := k.queueAttr(t, dev, a); v == "0" {
			t.Errorf("%s is 0", a)
		}
	}
	const off, length = 1 << 20, 512000
	for _, c := range []struct {
		name  string
		clear func()
	}{
		{"Dataset Management", func() { k.g.Shell(t, fmt.Sprintf("blkdiscard -o %d -l %d %s", off, length, dev)) }},
		{"Write Zeroes", func() { k.zero(t, dev, off, length) }},
	} {
		k.g.Shell(t, "dd if=/tmp/random of="+dev+" bs=1M oflag=direct 2>/dev/null")
		before := s.sub.Stats()
		c.clear()
		after := s.sub.Stats()
		if after.Others == before.Others || after.Writes != before.Writes || after.Errors != before.Errors {
			t.Errorf("%s: from %+v to %+v", c.name, before, after)
		}
		k.g.Shell(t, fmt.Sprintf(`
			cp /tmp/random /tmp/want
			dd if=/dev/zero of=/tmp/want bs=512 seek=%d count=%d conv=notrunc 2>/dev/null
			dd if=%s bs=1M count=4 iflag=direct 2>/dev/null | cmp - /tmp/want
			rm /tmp/want`, off/512, length/512, dev))
	}
	k.g.Shell(t, "blkdiscard "+dev+"; dd if="+dev+" bs=1M count=4 iflag=direct 2>/dev/null | cmp -n 4194304 - /dev/zero")
}

// testKernelAdmin sends admin commands through the kernel.
func testKernelAdmin(t *testing.T, k *kernelHost) {
	ctx := t.Context()
	s := k.simple(t)
	c := s.connect(t, 0, nvmehost.ConnectConfig{})
	dev := "/dev/" + c.Name
	b, err := k.admin(ctx, dev, nvme.Command{Opcode: nvme.AdminIdentify, CDW10: uint32(nvme.CNSController)}, nvme.IdentifyDataSize)
	check(t, err)
	var id nvme.IdentifyController
	check(t, id.UnmarshalBinary(b))
	if nqn, err := id.SubsystemNQN(); nqn != s.sub.NQN() || err != nil || id.CNTLID != c.Cntlid {
		t.Errorf("Identify Controller: subsystem %q, %v, controller %d", nqn, err, id.CNTLID)
	}
	b, err = k.admin(ctx, dev, nvme.GetLogPage(nvme.LogSMART, nvme.NSIDAll, 512, 0), 512)
	check(t, err)
	var smart nvme.SMARTLog
	check(t, smart.UnmarshalBinary(b))
	b, err = k.admin(ctx, dev, nvme.GetLogPage(nvme.LogANA, 0, 4096, 0), 4096)
	check(t, err)
	var ana nvme.ANALog
	check(t, ana.UnmarshalBinary(b))
	if st, ns := group(&ana, 1); st != nvme.ANAOptimized || len(ns) != 1 {
		t.Errorf("ANA log %+v", ana)
	}
	for _, c := range []struct {
		name string
		cmd  nvme.Command
		want nvme.Status
	}{
		{"opcode", nvme.Command{Opcode: 0xc2}, nvme.StatusInvalidOpcode},
		{"log page", nvme.GetLogPage(0xc7, 0, 512, 0), nvme.StatusInvalidLogPage},
		{"namespace", nvme.Command{Opcode: nvme.AdminIdentify, NSID: 5000, CDW10: uint32(nvme.CNSNamespace)}, nvme.StatusInvalidNamespace},
	} {
		if _, err := k.admin(ctx, dev, c.cmd, 512); !errors.Is(err, c.want) {
			t.Errorf("%s that is not there: %v, want %v", c.name, err, c.want)
		}
	}
}
