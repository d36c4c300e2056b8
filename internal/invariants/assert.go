package invariants

// Assert panics with the message if the condition is false, in builds that
// check invariants. Messages are constants, so that a call costs nothing else.
func Assert(ok bool, msg string) {
	if Enabled && !ok {
		panic("invariant violated: " + msg)
	}
}
