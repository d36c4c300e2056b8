package nvme

// Spurious counts a completion that named no outstanding command. For
// transports; what follows (usually Lost) is theirs to decide.
func (q *QueuePair) Spurious() { q.spurious++ }

// QueueStats are the counters of a queue pair since it was made.
type QueueStats struct {
	Submitted uint64 // commands given to the transport, replays included
	Completed uint64 // commands completed, by the controller or by the host
	Errors    uint64 // of these, with a status other than success
	Spurious  uint64 // completions that named no outstanding command
	Polls     uint64 // calls of Poll
	IdlePolls uint64 // polls that found nothing to do
	InFlight  int    // commands that the transport has
	Held      int    // commands that wait for a reconnect
}

// Stats returns the counters. Must be called on the poller's core.
func (q *QueuePair) Stats() QueueStats {
	return QueueStats{q.submitted, q.completed, q.errors, q.spurious, q.polls, q.idlePolls, q.inflight, len(q.held)}
}
