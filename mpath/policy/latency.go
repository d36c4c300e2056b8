//qpoll:hot

package policy

// latency spreads I/Os in inverse proportion to the latencies of paths, which
// it takes over batches of time and per kind of I/O.
type latency struct {
	dirs [Dirs]latencyDir
	slow [MaxPaths]uint64 // samples ignored
}

// latencyDir is the state for one kind of I/O.
type latencyDir struct {
	current uint32
	known   bool   // all candidates have a weight
	credits uint32 // left, of all
	end     int64
	path    [MaxPaths]latencyPath
}

type latencyPath struct {
	sum, n uint64 // of the batch
	ewma   uint64 // ns; 0 before the first batch has ended
	weight uint32 // 0: not known yet
	credit uint32
}

const (
	latencyWeights = 128           // what weights add up to, about
	latencyScore   = 1e9           // dividend of scores
	latencyIgnored = 1_000_000_000 // ns: longer ones are outliers
)

func (*latency) Shared() bool { return false }

// Select spends the credits of all paths side by side: the next is of the path
// that has the largest share of its own left. One path after the other would
// send a whole depth of I/Os to a slow one at once.
func (l *latency) Select(s *Set, _ int64, _ uint32, dir Dir) int {
	d := &l.dirs[min(dir, Other)]
	if !d.known {
		d.current = s.after(d.current)
		return int(d.current)
	}
	if d.credits == 0 {
		d.refill(s)
	}
	best, credit, weight := 0, uint32(0), uint32(1)
	for _, c := range s.Candidates() {
		slot := int(c & (MaxPaths - 1))
		p := &d.path[slot]
		if p.credit*weight > credit*p.weight {
			best, credit, weight = slot, p.credit, p.weight
		}
	}
	d.path[best].credit--
	d.credits--
	return best
}

// refill gives each path as many credits as it has weight.
func (d *latencyDir) refill(s *Set) {
	d.credits = 0
	for _, c := range s.Candidates() {
		p := &d.path[c&(MaxPaths-1)]
		p.credit = p.weight
		d.credits += p.weight
	}
}

func (*latency) Dispatched(*Set, *Ticket) {}

func (l *latency) Completed(s *Set, t *Ticket, now int64, ok bool) {
	ns := now - t.at
	if !ok || ns <= 0 {
		return
	}
	slot := t.slot & (MaxPaths - 1)
	if ns > latencyIgnored {
		l.slow[slot]++
		return
	}
	d := &l.dirs[min(t.Dir(), Other)]
	p := &d.path[slot]
	p.sum += uint64(ns)
	p.n++
	if now >= d.end {
		d.close(s, now)
	}
}

// close ends a batch: means go into the moving averages, and those into
// weights.
func (d *latencyDir) close(s *Set, now int64) {
	first := d.end == 0
	d.end = now + s.batch
	if first {
		return
	}
	for slot := range d.path {
		p := &d.path[slot]
		if p.n == 0 {
			continue
		}
		mean := max(p.sum/p.n, 1)
		if p.ewma != 0 {
			mean = max((p.ewma*(1<<s.shift-1)+mean)>>s.shift, 1)
		}
		p.ewma, p.sum, p.n = mean, 0, 0
	}
	d.weigh(s)
}

// weigh turns moving averages into weights and hands out credits.
func (d *latencyDir) weigh(s *Set) {
	var total uint64
	d.known = s.ncand != 0
	for _, c := range s.Candidates() {
		p := &d.path[c&(MaxPaths-1)]
		if p.ewma == 0 {
			d.known = false
			p.weight = 0
			continue
		}
		total += latencyScore / p.ewma
	}
	for _, c := range s.Candidates() {
		p := &d.path[c&(MaxPaths-1)]
		if p.ewma != 0 {
			p.weight = uint32(max(latencyScore/p.ewma*latencyWeights/max(total, 1), 1))
		}
	}
	d.refill(s)
}

// Changed forgets paths that are gone, and weighs the rest.
func (l *latency) Changed(s *Set) {
	for i := range l.dirs {
		d := &l.dirs[i]
		for slot := range d.path {
			if s.known>>slot&1 == 0 {
				d.path[slot] = latencyPath{}
			}
		}
		d.weigh(s)
	}
}

func (*latency) Tick(*Set, int64) {}
