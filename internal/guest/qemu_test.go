package guest

import (
	"errors"
	"strings"
	"testing"
)

// lines formats a command line with one option and its argument per line.
func lines(args []string) string {
	var b strings.Builder
	for i, a := range args {
		switch {
		case i == 0:
		case strings.HasPrefix(a, "-"):
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(a)
	}
	return b.String()
}

const baseArgs = `-nodefaults
-no-user-config
-no-reboot
-display none
-machine q35
-accel tcg,thread=single
-cpu max
-smp 2
-m 512
-kernel /k/vmlinux
-initrd /run/g/initrd
-append console=ttyS0 quiet panic=-1 oops=panic nowatchdog no_timer_check tsc=reliable rcupdate.rcu_cpu_stall_suppress=1 mitigations=off audit=0 apparmor=0 cryptomgr.notests random.trust_cpu=on rdinit=/init
-serial stdio
-chardev socket,id=agent,path=/run/g/agent.sock
-device virtio-serial-pci,id=agentbus
-device virtserialport,bus=agentbus.0,chardev=agent,name=qpoll.agent
-chardev socket,id=qmp,path=/run/g/qmp.sock
-mon chardev=qmp,mode=control
-netdev user,id=nic0,net=10.0.2.0/24,host=10.0.2.2,dhcpstart=10.0.2.15,ipv6=off
-device virtio-net-pci,netdev=nic0,id=nic0dev,mac=52:54:00:71:70:00,romfile=`

func argsOf(t *testing.T, c Config) string {
	t.Helper()
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return lines(qemuArgs(&c, "/k/vmlinux", "/run/g"))
}

func TestArgsDefault(t *testing.T) {
	if got := argsOf(t, Config{}); got != baseArgs {
		t.Errorf("got\n%s\nwant\n%s", got, baseArgs)
	}
}

func TestArgsAll(t *testing.T) {
	got := argsOf(t, Config{
		CPUs: 3, MemoryMiB: 1024, CPU: "Nehalem", NICs: 2, IOMMU: true, Parallel: true,
		Drives: []Drive{{ID: "d0", MiB: 1}}, Devices: []string{"nvme,drive=d0,serial=x"},
		QEMUArgs: []string{"-rtc", "base=utc"}, KernelArgs: []string{"a=b", "c"},
	})
	want := strings.NewReplacer(
		"-machine q35", "-device intel-iommu,intremap=on,caching-mode=on\n-machine q35,kernel-irqchip=split",
		"thread=single", "thread=multi", "-cpu max", "-cpu Nehalem", "-smp 2", "-smp 3", "-m 512", "-m 1024",
		"rdinit=/init", "rdinit=/init intel_iommu=on a=b c",
	).Replace(baseArgs) + `
-netdev user,id=nic1,net=10.0.3.0/24,host=10.0.3.2,dhcpstart=10.0.3.15,ipv6=off
-device virtio-net-pci,netdev=nic1,id=nic1dev,mac=52:54:00:71:70:01,romfile=
-drive if=none,id=d0,format=raw,cache=unsafe,discard=unmap,file=/run/g/drive-d0
-device nvme,drive=d0,serial=x
-rtc base=utc`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := argsOf(t, Config{NICs: NoNIC}); strings.Contains(got, "netdev") {
		t.Errorf("without interfaces:\n%s", got)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []Config{
		{CPUs: -1}, {CPUs: 65}, {MemoryMiB: 64}, {NICs: -2}, {NICs: MaxNICs + 1},
		{Drives: []Drive{{MiB: 1}}}, {Drives: []Drive{{ID: "x"}}}, {Drives: []Drive{{ID: "a,b", MiB: 1}}}, {Drives: []Drive{{ID: "../x", MiB: 1}}},
	} {
		if _, err := c.withDefaults(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestSplitModule(t *testing.T) {
	for in, want := range map[string][2]string{
		"brd": {"brd", ""}, "brd rd_nr=1 rd_size=2": {"brd", "rd_nr=1 rd_size=2"}, " brd  x=1 ": {"brd", "x=1"},
	} {
		if n, p := splitModule(in); n != want[0] || p != want[1] {
			t.Errorf("%q: got %q, %q", in, n, p)
		}
	}
}
