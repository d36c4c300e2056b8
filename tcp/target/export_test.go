package target

// Starving returns how many places in the queues for memory are taken. Only
// while no poller runs.
func (t *Target) Starving() (n int) {
	for _, w := range t.workers {
		n += len(w.cold.starving)
	}
	return n
}

// IOQueues returns how many I/O queues each worker is thought to have.
func (t *Target) IOQueues() (list []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.workers {
		list = append(list, w.cold.ioQueues)
	}
	return list
}
