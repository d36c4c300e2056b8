package nvme

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestConfigDefaults(t *testing.T) {
	var none *Config
	for name, c := range map[string]Config{"nil": none.withDefaults(), "zero": (&Config{}).withDefaults()} {
		if c.KeepAlive != 5*time.Second || c.ReconnectDelay != 10*time.Second || c.CtrlLossTimeout != 600*time.Second ||
			c.FastIOFailTimeout != Forever || c.ConnectTimeout != 15*time.Second || c.AdminTimeout != 60*time.Second ||
			c.IOTimeout != 30*time.Second || c.Retries != 5 || c.IOQueues < 2 || c.QueueSize != 256 || c.AdminQueueSize != 32 ||
			c.Logger == nil || c.Events == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	c := (&Config{ReconnectDelay: Forever, Retries: -1, AdminQueueSize: 1, IOQueues: 1 << 30}).withDefaults()
	if c.ReconnectDelay != 10*time.Second {
		t.Error("without a pause between them, reconnects would take all of a core:", c.ReconnectDelay)
	}
	if c.Retries != 0 || c.AdminQueueSize != 16 || c.IOQueues != 65534 {
		t.Errorf("%+v", c)
	}
}

func TestKATO(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		Forever: 0, 0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond,
		5*time.Second + 1: 5001 * time.Millisecond, math.MaxInt64: (1<<32 - 1) * time.Millisecond,
	} {
		if got := (&Config{KeepAlive: given}).KATO(); got != want {
			t.Errorf("%v: %v, want %v", given, got, want)
		}
	}
}

func TestConfigFromAddress(t *testing.T) {
	const base = "trtype:tcp traddr:10.0.0.1 subnqn:nqn.2026-01.io.qpoll:x "
	apply := func(s string) (Config, error) {
		a, err := ParseAddress(base + s)
		if err != nil {
			return Config{}, err
		}
		c := (&Config{HostNQN: "nqn.2026-01.io.qpoll:configured"}).withDefaults()
		return c, c.apply(&a)
	}
	c, err := apply("keep_alive_tmo:7 reconnect-delay:3 ctrl_loss_tmo:-1 fast_io_fail_tmo:0 nr_io_queues:4 queue_size:128 " +
		"hostnqn:nqn.2026-01.io.qpoll:host hostid:01234567-89ab-cdef-0123-456789abcdef")
	if err != nil || c.KeepAlive != 7*time.Second || c.ReconnectDelay != 3*time.Second || c.CtrlLossTimeout != Forever ||
		c.FastIOFailTimeout != time.Nanosecond || c.IOQueues != 4 || c.QueueSize != 128 ||
		c.HostNQN != "nqn.2026-01.io.qpoll:host" || FormatUUID(c.HostID) != "01234567-89ab-cdef-0123-456789abcdef" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := apply("keep_alive_tmo:0"); err != nil || c.KeepAlive != Forever {
		t.Error(c.KeepAlive, err)
	}
	for _, s := range []string{
		"reconnect_delay:0", "reconnect_delay:-1", "keep_alive_tmo:x", "ctrl_loss_tmo:99999999999999999999",
		"nr_io_queues:0", "nr_io_queues:65535", "queue_size:1", "queue_size:65536", "hostid:12", "hostid:0-1-2-3",
		"hostid:0123456789abcdef-0123456789abcdef-", "hostid:00000000-0000-0000-0000-000000000000", "hostnqn:x", "ns:1",
	} {
		if _, err := apply(s); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v", s, err)
		}
	}
}
