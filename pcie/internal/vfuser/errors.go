package vfuser

import "fmt"

// FormatError reports a message that is not formed as it should be: too short,
// too long, or with a count that leads outside of it.
type FormatError struct {
	What   string // the structure, for example "region info"
	Reason string
}

func (e *FormatError) Error() string { return "vfio-user: malformed " + e.What + ": " + e.Reason }

func malformed(what, format string, args ...any) error {
	return &FormatError{What: what, Reason: fmt.Sprintf(format, args...)}
}

func short(what string, have, want int) error {
	return malformed(what, "%d bytes, want %d", have, want)
}
