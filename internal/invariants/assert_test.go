package invariants

import "testing"

func TestAssert(t *testing.T) {
	for _, ok := range []bool{true, false} {
		func() {
			defer func() {
				if got := recover(); (got != nil) != (Enabled && !ok) {
					t.Errorf("Assert(%v) with checks %v: recovered %v", ok, Enabled, got)
				}
			}()
			Assert(ok, "of a test")
		}()
	}
}
