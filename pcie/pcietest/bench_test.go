package pcietest

import (
	"testing"

	"github.com/qpoll/qpoll/internal/mmio"
	"github.com/qpoll/qpoll/nvme"
)

// pump is a driver that costs as little as the controller: it sends one command
// over and over, and counts completions.
type pump struct {
	sq, cq   []byte
	w        mmio.Window
	tail     mmio.Register32
	head     mmio.Register32
	size     uint32
	at, seen uint32
	phase    uint64
}

func newPump(b *testing.B, d *driver, entries int, cmd nvme.Command) *pump {
	b.Helper()
	d.enable().queue(1, entries)
	p := &pump{size: uint32(entries), phase: 1}
	p.sq, p.cq = d.at(d.sqs[1].base, entries*64), d.at(d.cqs[1].base, entries*16)
	p.w = mmio.NewWindow(p.cq)
	for i := range entries {
		cmd.CID = uint16(i)
		copy(p.sq[64*i:], commandBytes(&cmd)[:])
	}
	var err error
	p.tail, err = d.db.Register32(2 * d.stride)
	d.must(err)
	p.head, err = d.db.Register32(3 * d.stride)
	d.must(err)
	return p
}

// send sends n commands.
func (p *pump) send(n uint32) {
	if p.at += n; p.at >= p.size {
		p.at -= p.size
	}
	mmio.StoreFence()
	p.tail.Store(p.at)
}

// reap takes what has completed.
func (p *pump) reap() (n uint32) {
	for {
		high, _ := p.w.Read64(uint64(p.seen)*16 + 8)
		if high>>48&1 != p.phase {
			break
		}
		if p.seen++; p.seen == p.size {
			p.seen, p.phase = 0, p.phase^1
		}
		n++
	}
	if n > 0 {
		p.head.Store(p.seen)
	}
	return n
}

// BenchmarkController is what the controller itself costs for each command, in
// batches of 32, stepped.
func BenchmarkController(b *testing.B) {
	read := rw(nvme.OpRead, 1, 0, 8, arenaBase+arenaSize-4096)
	for _, c := range []struct {
		name string
		cfg  Config
		cmd  nvme.Command
	}{
		{"ideal", Config{Ideal: true}, read},
		{"flush", Config{}, flush},
		{"null read 512", Config{Namespaces: []NamespaceConfig{{Backend: Null(1 << 30)}}}, rw(nvme.OpRead, 1, 0, 1, arenaBase+arenaSize-4096)},
		{"null read 4096", Config{Namespaces: []NamespaceConfig{{Backend: Null(1 << 30)}}}, read},
		{"memory read 4096", Config{}, read},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := newDriver(b, c.cfg)
			p := newPump(b, d, 256, c.cmd)
			b.ReportAllocs()
			b.ResetTimer()
			for left := b.N; left > 0; left -= 32 {
				p.send(32)
				for n := uint32(0); n < 32; n += p.reap() {
					d.c.Poll(d.now)
				}
			}
			b.StopTimer()
			d.noFaults()
		})
	}
}

// BenchmarkIdeal is a controller on a core of its own and a driver that costs
// next to nothing, with so many commands in flight.
func BenchmarkIdeal(b *testing.B) {
	for _, front := range []struct {
		name string
		make func(testing.TB, Config) *driver
	}{{"in process", newDriver}, {"vfio-user", newRemote}} {
		for _, depth := range []uint32{1, 32, 128} {
			b.Run(front.name+"/"+string('0'+rune(depth/100))+string('0'+rune(depth/10%10))+string('0'+rune(depth%10)), func(b *testing.B) {
				d := front.make(b, Config{Ideal: true, Spin: -1})
				d.step = wait
				d.c.Start()
				p := newPump(b, d, 256, rw(nvme.OpRead, 1, 0, 8))
				b.ResetTimer()
				p.send(depth)
				for done := 0; done < b.N; {
					n := p.reap()
					done += int(n)
					if n > 0 {
						p.send(n)
					}
				}
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "MIOPS")
			})
		}
	}
}
