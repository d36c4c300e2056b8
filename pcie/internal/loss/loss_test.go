package loss

import "testing"

func TestWatch(t *testing.T) {
	var w Watch
	calls := 0
	w.OnGone(func() { calls++ })
	if w.Gone() || calls != 0 {
		t.Error("gone from the start")
	}
	w.Set()
	w.Set()
	if !w.Gone() || calls != 1 {
		t.Errorf("gone %v, %d calls", w.Gone(), calls)
	}
	w.OnGone(func() { calls++ })
	if calls != 2 {
		t.Error("told nothing of a device that has gone already")
	}
	var closed Watch
	closed.OnGone(func() { t.Error("told of a device that was closed") })
	closed.End()
	closed.Set()
	if !closed.Gone() {
		t.Error("not gone")
	}
}
