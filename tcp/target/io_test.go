package target_test

import (
	"testing"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
	"github.com/qpoll/qpoll/tcp/target"
	"github.com/qpoll/qpoll/tcp/target/backend"
)

// TestReadWrite writes and reads back, in capsules and by R2T, with every kind
// of layout that the transport has.
func TestReadWrite(t *testing.T) {
	for _, c := range []struct {
		name string
		tr   target.Transport
		ic   pdu.ICReqFields
		o    connectOptions
	}{
		{name: "plain"},
		{name: "success", o: connectOptions{flags: nvme.ConnectDisableFlowControl}},
		{name: "header digest", ic: pdu.ICReqFields{HDGST: true}},
		{name: "data digest", ic: pdu.ICReqFields{DDGST: true}, o: connectOptions{flags: nvme.ConnectDisableFlowControl}},
		{name: "digests", ic: pdu.ICReqFields{HDGST: true, DDGST: true}},
		{name: "alignment", ic: pdu.ICReqFields{HPDA: 31, HDGST: true, DDGST: true}, tr: target.Transport{CPDA: 31}},
		{name: "pieces", tr: target.Transport{MaxC2HData: 1000, R2TLength: 3000, MaxH2CData: 4096, MaxR2T: 4}, ic: pdu.ICReqFields{MAXR2T: 3, DDGST: true}},
		{name: "tiny pieces", tr: target.Transport{MaxC2HData: 4, R2TLength: 4, MaxR2T: 16}, ic: pdu.ICReqFields{MAXR2T: 7}},
		{name: "small staging", tr: target.Transport{Staging: 16 << 10}, ic: pdu.ICReqFields{HDGST: true}},
		{name: "no capsules", tr: target.Transport{InCapsule: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := oneNamespace(backend.NewHeap(1 << 20))
			cfg.Transport = c.tr
			_, q := newLab(t, cfg).io(c.o, c.ic)
			for i, blocks := range []uint32{1, 2, 3, 8, 16} {
				data := pattern(byte(i), int(blocks)*512)
				if c.tr.InCapsule >= 0 {
					q.ok(q.do(write(uint64(i)*100, blocks), data))
				} else {
					q.ok(q.out(write(uint64(i)*100, blocks), data))
				}
				got, cpl := q.in(read(uint64(i)*100, blocks), len(data))
				q.ok(cpl)
				same(t, "in-capsule", got, data)

				data = pattern(byte(i)+100, len(data))
				q.ok(q.out(write(uint64(i)*100, blocks), data))
				got, cpl = q.in(read(uint64(i)*100, blocks), len(data))
				q.ok(cpl)
				same(t, "R2T", got, data)
			}
		})
	}
}
