package policy

// Ticket says what an I/O took from the counters of its path when it was
// dispatched. It lies with the I/O; the zero value holds nothing. One that is
// held is not to be copied, since each copy could be given back.
type Ticket struct {
	at    int64
	bytes uint32
	epoch uint32 // of the path: which life of its queue
	// Word is for the policy that was in force at dispatch; it sees it again at
	// completion if it still is.
	Word [2]uint32
	gen  uint16 // of the Set: whose Word it is
	slot uint8
	dir  uint8
	held bool
}

// Held tells whether the ticket is to be given back yet.
func (t *Ticket) Held() bool { return t.held }

// Slot returns the path.
func (t *Ticket) Slot() int { return int(t.slot) }

// At returns when the I/O was dispatched, in nanoseconds on the caller's clock.
func (t *Ticket) At() int64 { return t.at }

// Bytes returns how many bytes the I/O transfers.
func (t *Ticket) Bytes() uint32 { return t.bytes }

// Dir returns the kind of the I/O.
func (t *Ticket) Dir() Dir { return Dir(t.dir) }
