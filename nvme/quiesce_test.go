package nvme

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestQuiesceTime(t *testing.T) {
	const kato = 5 * time.Second
	for _, c := range []struct {
		name     string
		cqt      uint16
		cause    error
		disabled bool
		want     time.Duration
	}{
		{"not reported", 0, errors.New("closed"), false, 0},
		{"not reported, timeout", 0, ErrTimeout, false, 0},
		{"closed by the controller", 1500, errors.New("closed"), false, 1500 * time.Millisecond},
		{"silent controller", 1500, &OpError{Op: "x", Queue: -1, Err: fmt.Errorf("%w: no answer", ErrTimeout)}, false, kato + 1500*time.Millisecond},
		{"reset", 1500, errReset, true, 0},
		{"reset that could not be", 1500, errReset, false, 1500 * time.Millisecond},
	} {
		k := &Controller{}
		k.id.Store(&IdentifyController{CQT: c.cqt})
		k.alive.timeout = kato
		if got := k.quiesceTime(c.cause, c.disabled); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
