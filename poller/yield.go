package poller

import (
	"runtime"
	"time"
)

// yieldFor lets a poller that has lost its core in the middle of publishing go
// on: that takes it as long as the scheduler of the system sees fit.
func yieldFor(try int) {
	if try < 100 {
		runtime.Gosched()
		return
	}
	time.Sleep(time.Duration(min(try, 1000)) * time.Microsecond)
}
