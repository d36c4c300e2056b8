package wire

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"syscall"
)

// Op names an operation of the agent.
type Op string

// The operations. See the package comment for the frames of each.
const (
	OpHello  Op = "hello"
	OpExec   Op = "exec"
	OpSteps  Op = "steps"
	OpUpload Op = "upload"
	OpFetch  Op = "fetch"
)

// Request is the first frame of every stream.
type Request struct {
	Op    Op     `json:"op"`
	Exec  *Exec  `json:"exec,omitempty"`
	Steps []Step `json:"steps,omitempty"`
	Path  string `json:"path,omitempty"` // OpUpload, OpFetch
	Mode  uint32 `json:"mode,omitempty"` // OpUpload: permission bits
}

// Exec tells what to run. Env is added to the agent's own environment.
type Exec struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// Result is the last frame of every stream.
type Result struct {
	Err     *Error  `json:"err,omitempty"`
	Exit    *Exit   `json:"exit,omitempty"`
	Hello   *Hello  `json:"hello,omitempty"`
	Replies []Reply `json:"replies,omitempty"` // one for each step that succeeded
}

// Exit tells how a process ended.
type Exit struct {
	Code   int `json:"code"`             // exit code; -1 when a signal ended it
	Signal int `json:"signal,omitempty"` // the signal that ended it, or 0
	// Held reports that some other process kept the output open after the
	// process had ended, so that output may be missing.
	Held bool `json:"held,omitempty"`
}

// Hello describes a guest that is ready.
type Hello struct {
	Release string   `json:"release"` // kernel release, as in uname -r
	Uptime  string   `json:"uptime"`  // seconds since boot, from /proc/uptime
	Modules []string `json:"modules"` // what was loaded, in order
}

// Error carries an error of the guest. Errno is 0 when the error was not that
// of a system call.
type Error struct {
	Op    string `json:"op,omitempty"`
	Path  string `json:"path,omitempty"`
	Errno int    `json:"errno,omitempty"`
	Msg   string `json:"msg"`
}

// Unpack returns e as an error: an *fs.PathError with the errno of the guest
// where there is one, so that errors.Is works as it does for local files.
// It returns nil for a nil e.
func (e *Error) Unpack() error {
	switch {
	case e == nil:
		return nil
	case e.Errno != 0 && e.Path != "":
		return &fs.PathError{Op: e.Op, Path: e.Path, Err: syscall.Errno(e.Errno)}
	case e.Errno != 0:
		return fmt.Errorf("%s: %w", e.Op, syscall.Errno(e.Errno))
	}
	return fmt.Errorf("guest agent: %s", e.Msg)
}

// DecodeRequest parses and checks the payload of a KindRequest frame.
func DecodeRequest(b []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("wire: request: %w", err)
	}
	switch r.Op {
	case OpHello, OpSteps:
	case OpExec:
		if r.Exec == nil || len(r.Exec.Argv) == 0 {
			return nil, fmt.Errorf("wire: request: %s without a command", r.Op)
		}
	case OpUpload, OpFetch:
		if r.Path == "" {
			return nil, fmt.Errorf("wire: request: %s without a path", r.Op)
		}
	default:
		return nil, fmt.Errorf("wire: request: unknown operation %q", r.Op)
	}
	return &r, nil
}

// DecodeResult parses the payload of a KindResult frame.
func DecodeResult(b []byte) (*Result, error) {
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("wire: result: %w", err)
	}
	return &r, nil
}
