package nvme

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// apply lets the options of an address override the configuration. Times are
// in seconds and negative ones mean never, as the kernel has them.
func (c *Config) apply(a *Address) error {
	if v, ok := a.Options["ns"]; ok {
		return fmt.Errorf("%w: ns %s: a controller is opened with all of its namespaces; choose one with Controller.Namespace", ErrAddress, v)
	}
	if a.HostNQN != "" {
		c.HostNQN = a.HostNQN
	}
	if a.HostID != "" {
		id, err := ParseUUID(a.HostID)
		if err == nil && id == [16]byte{} {
			err = errors.New("zero stands for no host")
		}
		if err != nil {
			return fmt.Errorf("%w: hostid: %w", ErrAddress, err)
		}
		c.HostID = id
	}
	// zero is what a zero means; 0: that only positive values are taken.
	seconds := func(key string, to *time.Duration, zero time.Duration) error {
		v, ok := a.Options[key]
		if !ok {
			return nil
		}
		n, err := strconv.Atoi(v)
		if err != nil || n > 1<<30 || n <= 0 && zero == 0 {
			return fmt.Errorf("%w: %s %q is not a number of seconds", ErrAddress, key, v)
		}
		switch {
		case n < 0:
			*to = Forever
		case n == 0:
			*to = zero
		default:
			*to = time.Duration(n) * time.Second
		}
		return nil
	}
	number := func(key string, to *int, lo, hi int) error {
		v, ok := a.Options[key]
		if !ok {
			return nil
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("%w: %s %q is not a number from %d to %d", ErrAddress, key, v, lo, hi)
		}
		*to = n
		return nil
	}
	for _, err := range []error{
		seconds("keep_alive_tmo", &c.KeepAlive, Forever), // 0 turns keep-alive off
		seconds("reconnect_delay", &c.ReconnectDelay, 0),
		seconds("ctrl_loss_tmo", &c.CtrlLossTimeout, time.Nanosecond),
		seconds("fast_io_fail_tmo", &c.FastIOFailTimeout, time.Nanosecond),
		number("nr_io_queues", &c.IOQueues, 1, 65534),
		number("queue_size", &c.QueueSize, 2, maxQueueSize),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
