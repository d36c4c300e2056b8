// Package backend has what lies behind the namespaces of a target: memory, a
// file, or nothing at all, and wrappers that delay, pace, hold up or fail what
// goes through them and can be changed while they are in use.
//
// A [Backend] is opened once for each poller; the [Channel] that this gives
// belongs to that poller's core. An [Op] is submitted to a channel and is done
// either at once or later, when the channel is polled, always on that core.
//
// Wrappers stack: NewLatency(NewRate(memory, limit), delay) paces what was
// delayed before. Their settings may be changed from any goroutine and hold
// for what is submitted afterwards.
//
// Times are as fine as the passes of the poller: what is due is released in
// the first pass that begins no earlier. On a busy poller that is within a
// microsecond or the length of a pass, whichever is longer; delays count from
// the pass in which an operation arrived.
package backend
