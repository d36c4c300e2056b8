//go:build guest

package interop

import (
	"testing"

	"github.com/qpoll/qpoll/internal/guest/interop/pattern"
	"github.com/qpoll/qpoll/internal/guest/nvmet"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
)

// digests are the ways to connect.
var digests = []struct {
	name         string
	header, data bool
}{{"None", false, false}, {"Header", true, false}, {"Data", false, true}, {"Both", true, true}}

// testData moves data of all sizes at all depths through several queues.
func testData(t *testing.T, k *kernelTarget) {
	e := k.export(t, onePort,
		nvmet.NamespaceConfig{NSID: 1, Backend: nvmet.NullBlk{MiB: 12}},
		nvmet.NamespaceConfig{NSID: 2, Backend: nvmet.NullBlk{MiB: 3, BlockSize: 4096}})
	p := []*poller.Poller{newPoller(t, "p0"), newPoller(t, "p1")}
	models := []([]*pattern.Model){share(3, 12<<20, 512), share(3, 3<<20, 4096)}
	for _, d := range digests {
		t.Run(d.name, func(t *testing.T) {
			h := e.connect(t, 0, nvme.Config{
				IOQueues: 4, Transport: tcp.Config{HeaderDigest: d.header, DataDigest: d.data},
			})
			// Of three queues, one poller has two.
			queues := []*nvme.NamespaceQueue{h.queue(t, 1, p[0]), h.queue(t, 1, p[1]), h.queue(t, 1, p[0])}
			for i, s := range []shape{
				{blocks: []uint64{1}, depth: 128, ops: 500},
				{blocks: []uint64{1, 2, 3, 5, 7, 8}, depth: 1, ops: 50},
				{blocks: []uint64{4, 8, 16, 31, 32, 33, 64}, depth: 32, ops: 150, vector: true}, // a capsule carries 32
				{blocks: []uint64{127, 128, 255, 256, 257}, depth: 16, ops: 40},
				{blocks: []uint64{1024, 2047, 2048}, depth: 3, ops: 8, vector: true},
				{blocks: []uint64{4096, 8191, 8192}, depth: 1, ops: 4},
			} {
				run(t, queues, models[0], s, uint64(i))
			}
			// A namespace of other blocks shares the queue pairs.
			for i, q := range queues {
				var err error
				queues[i], err = q.QueuePair().Bind(h.namespace(t, 2))
				check(t, err)
			}
			run(t, queues, models[1], shape{blocks: []uint64{1, 2, 4, 5, 16, 31}, depth: 8, ops: 40}, 99)
			for i := range models {
				for _, m := range models[i] {
					readBack(t, h.namespace(t, uint32(i+1)), m)
				}
			}
		})
	}
}

// share divides a namespace of so many bytes among n models.
func share(n, bytes, block int) []*pattern.Model {
	blocks := uint64(bytes / block / n)
	var all []*pattern.Model
	for i := range uint64(n) {
		all = append(all, pattern.NewModel(i*blocks, blocks, block))
	}
	return all
}

// run has each of the queues run a load on a model, all at the same time.
func run(t *testing.T, queues []*nvme.NamespaceQueue, models []*pattern.Model, s shape, seed uint64) {
	t.Helper()
	var loads []*load
	for i, q := range queues {
		loads = append(loads, startLoad(t, q, models[i], s, seed<<8|uint64(i)))
	}
	for _, l := range loads {
		l.wait(t)
	}
}
