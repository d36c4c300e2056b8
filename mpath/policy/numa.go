//qpoll:hot

package policy

import "github.com/qpoll/qpoll/nvme"

// numa takes the path nearest to the core's NUMA node and stays with it until
// it stops being optimized or usable.
type numa struct {
	Base
	current int
	chosen  bool
}

func (n *numa) Select(*Set, int64, uint32, Dir) int { return n.current }

// Changed keeps an optimized path. One that is not gives way to a nearer one.
func (n *numa) Changed(s *Set) {
	if n.chosen && s.mask>>uint(n.current)&1 != 0 && s.paths[n.current].State == nvme.ANAOptimized {
		return
	}
	n.chosen = false
	for _, c := range s.Candidates() {
		if !n.chosen || s.paths[c].Distance < s.paths[n.current].Distance {
			n.current, n.chosen = int(c), true
		}
	}
}
