// Package invariants tells code whether to check what must hold anyway. The
// checks are compiled in with the build tag "invariants" and under the race
// detector, and cost nothing otherwise:
//
//	if invariants.Enabled && !p.OnCore() {
//		panic("...")
//	}
package invariants
