package nvmet

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func diff(t *testing.T, got, want string) {
	t.Helper()
	if got, want = strings.TrimSpace(got), strings.TrimSpace(want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSubsystemBatch(t *testing.T) {
	min, err := (&SubsystemConfig{NQN: "nqn.x"}).batch()
	if err != nil {
		t.Fatal(err)
	}
	diff(t, min.String(), `
mkdir /sys/kernel/config/nvmet/subsystems/nqn.x
write /sys/kernel/config/nvmet/subsystems/nqn.x/attr_allow_any_host "1"`)
	full, err := (&SubsystemConfig{
		NQN: "nqn.x", Serial: "S", Model: "M", Firmware: "F", IEEE: "0x0050c2", Version: "1.4",
		Hosts: []string{"nqn.h"}, CntlidMin: 1, CntlidMax: 9, QueuesMax: 4, PI: true,
		Attrs: map[string]string{"attr_z": "2", "attr_y": "1"},
	}).batch()
	if err != nil {
		t.Fatal(err)
	}
	diff(t, full.String(), strings.ReplaceAll(`
mkdir DIR
write DIR/attr_allow_any_host "0"
write DIR/attr_serial "S"
write DIR/attr_model "M"
write DIR/attr_firmware "F"
write DIR/attr_ieee_oui "0x0050c2"
write DIR/attr_version "1.4"
write DIR/attr_cntlid_min "1"
write DIR/attr_cntlid_max "9"
write DIR/attr_qid_max "4"
write DIR/attr_pi_enable "1"
write DIR/attr_y "1"
write DIR/attr_z "2"`, "DIR", "/sys/kernel/config/nvmet/subsystems/nqn.x"))
	for _, nqn := range []string{"", strings.Repeat("x", 224)} {
		if _, err := (&SubsystemConfig{NQN: nqn}).batch(); !errors.Is(err, ErrConfig) {
			t.Errorf("NQN of %d bytes: got %v", len(nqn), err)
		}
	}
}

func TestNamespaceBatch(t *testing.T) {
	for _, c := range []struct {
		cfg  NamespaceConfig
		want string
	}{
		{NamespaceConfig{NSID: 1, Backend: NullBlk{}}, `
mkdir DIR/1
write DIR/1/device_path "/dev/x"
write DIR/1/enable "1"`},
		{NamespaceConfig{NSID: 4294967294, Backend: File{}, UUID: "u", NGUID: "n", ANAGroup: 3, Disabled: true}, `
mkdir DIR/4294967294
write DIR/4294967294/device_path "/dev/x"
write DIR/4294967294/device_uuid "u"
write DIR/4294967294/device_nguid "n"
write DIR/4294967294/ana_grpid "3"
write DIR/4294967294/buffered_io "1"`},
		{NamespaceConfig{NSID: 2, Backend: File{}, Direct: true}, `
mkdir DIR/2
write DIR/2/device_path "/dev/x"
write DIR/2/enable "1"`},
	} {
		want := strings.ReplaceAll(c.want, "DIR", "/sys/kernel/config/nvmet/subsystems/nqn.x/namespaces")
		diff(t, c.cfg.batch("nqn.x", "/dev/x").String(), want)
	}
}

func TestPortBatch(t *testing.T) {
	min := (&PortConfig{ID: 1, Trsvcid: 4420}).batch()
	diff(t, min.String(), strings.ReplaceAll(`
mkdir DIR
write DIR/addr_trtype "tcp"
write DIR/addr_adrfam "ipv4"
write DIR/addr_traddr "127.0.0.1"
write DIR/addr_trsvcid "4420"`, "DIR", "/sys/kernel/config/nvmet/ports/1"))
	full := (&PortConfig{
		ID: 7, Trsvcid: 5000, InlineData: 8192, MaxQueueSize: 64, PI: true,
		ANA:   map[uint32]ANAState{3: Inaccessible, 1: NonOptimized, 2: Optimized},
		Attrs: map[string]string{"addr_treq": "not required"},
	}).batch()
	diff(t, full.String(), strings.ReplaceAll(`
mkdir DIR
write DIR/addr_trtype "tcp"
write DIR/addr_adrfam "ipv4"
write DIR/addr_traddr "127.0.0.1"
write DIR/addr_trsvcid "5000"
write DIR/param_inline_data_size "8192"
write DIR/param_max_queue_size "64"
write DIR/param_pi_enable "1"
write DIR/addr_treq "not required"
write DIR/ana_groups/1/ana_state "non-optimized"
mkdir DIR/ana_groups/2
write DIR/ana_groups/2/ana_state "optimized"
mkdir DIR/ana_groups/3
write DIR/ana_groups/3/ana_state "inaccessible"`, "DIR", "/sys/kernel/config/nvmet/ports/7"))
}

func TestNullBlkBatch(t *testing.T) {
	b, err := NullBlk{MiB: 64, BlockSize: 4096, Delay: 2 * time.Millisecond, Attrs: map[string]string{"badblocks": "+8-15"}}.batch("q1")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, b.String(), strings.ReplaceAll(`
mkdir DIR
write DIR/size "64"
write DIR/blocksize "4096"
write DIR/memory_backed "1"
write DIR/discard "1"
write DIR/irqmode "2"
write DIR/completion_nsec "2000000"
write DIR/badblocks "+8-15"
write DIR/power "1"`, "DIR", "/sys/kernel/config/nullb/q1"))
	b, err = NullBlk{MiB: 1, NoMemory: true}.batch("q1")
	if err != nil || strings.Contains(b.String(), "memory_backed") {
		t.Errorf("got %s, %v", b, err)
	}
	if _, err := (NullBlk{}).batch("q1"); !errors.Is(err, ErrConfig) {
		t.Errorf("no size: %v", err)
	}
}
