package pcietest

import "github.com/qpoll/qpoll/nvme"

// begin executes the command in c.cmd, which came from q.
func (c *Controller) begin(q *subQueue) {
	if len(c.rules) > 0 {
		if i := c.strike(q); i != nil {
			c.apply(q, i)
			return
		}
	}
	c.conclude(q)
}

// conclude executes and completes the command.
func (c *Controller) conclude(q *subQueue) {
	s, result, done := c.execute(q)
	if done && !q.gone {
		c.complete(q, c.cur.cid, s, result)
	}
}

// execute executes the command. It is not done if it completes later, or never.
func (c *Controller) execute(q *subQueue) (s nvme.Status, result uint64, done bool) {
	if q.id == 0 {
		c.stats.Admin++
		c.alive = c.now
		s, result, done = c.admin(&c.cmd)
		if done && s != 0 {
			c.errors.add(&c.cmd, 0, s)
		}
		return s, result, done
	}
	s = c.io(&c.cmd)
	if s != 0 {
		c.errors.add(&c.cmd, q.id, s)
	}
	return s, 0, true
}
