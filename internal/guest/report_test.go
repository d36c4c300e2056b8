package guest

import (
	"fmt"
	"strings"
	"testing"
)

// recorder is a testing.TB that records what is reported to it.
type recorder struct {
	testing.TB
	cleanups []func()
	failed   bool
	text     strings.Builder
}

func (r *recorder) Helper()                 {}
func (r *recorder) Cleanup(f func())        { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool            { return r.failed }
func (r *recorder) Logf(f string, a ...any) { fmt.Fprintf(&r.text, f+"\n", a...) }
func (r *recorder) Error(a ...any)          { r.Errorf("%s", fmt.Sprint(a...)) }
func (r *recorder) Errorf(f string, a ...any) {
	r.failed = true
	r.Logf(f, a...)
}

func TestReport(t *testing.T) {
	faults := []string{"WARNING: CPU: 0"}
	for _, c := range []struct {
		name   string
		cfg    Config
		before bool
		gone   error
		faults []string
		failed bool
		text   string
	}{
		{"fine", Config{}, false, nil, nil, false, ""},
		{"failed for other reasons", Config{Name: "g"}, true, nil, nil, true, "console of g:\nlogin:\n"},
		{"warning", Config{Name: "g"}, false, nil, faults, true, "guest: the kernel of g complained:\nWARNING: CPU: 0\nconsole of g:\nlogin:\n"},
		{"allowed warning", Config{AllowFaults: true}, false, nil, faults, false, ""},
		{"gone", Config{AllowFaults: true}, false, ErrGone, faults, true, ErrGone.Error() + "\n"},
	} {
		r := &recorder{TB: t, failed: c.before}
		report(r, &c.cfg, c.gone, c.faults, "login:")
		if r.failed != c.failed || r.text.String() != c.text {
			t.Errorf("%s: failed %v, text %q", c.name, r.failed, r.text.String())
		}
	}
}
