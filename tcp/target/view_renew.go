package target

import (
	"math/bits"

	"github.com/qpoll/qpoll/nvme"
)

type viewKey struct {
	sub  *Subsystem
	port *Port
}

// viewOf returns the view of a subsystem at a port, which all connections of
// the worker share.
func (w *worker) viewOf(sub *Subsystem, port *Port) *view {
	key := viewKey{sub, port}
	v := w.cold.views[key]
	if v == nil {
		v = &view{sub: sub, port: port}
		w.cold.views[key] = v
		w.renew(v)
	}
	return v
}

// renew builds a view from what is configured now.
func (w *worker) renew(v *view) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	v.gen = v.sub.gen.Load()
	v.list = make([]entry, 0, len(v.sub.namespaces))
	for _, ns := range v.sub.namespaces {
		v.list = append(v.list, w.newEntry(ns, v.port))
	}
	v.index()
}

// index makes the entries of low NSIDs be found by index.
func (v *view) index() {
	v.dense = make([]*entry, 0, min(len(v.list), denseLimit))
	for i := range v.list {
		e := &v.list[i]
		if e.nsid > denseLimit {
			break
		}
		for len(v.dense) < int(e.nsid)-1 {
			v.dense = append(v.dense, nil)
		}
		v.dense = append(v.dense, e)
	}
}

// newEntry describes a namespace, and opens a channel to it if the worker has
// none. The caller holds the target's lock.
func (w *worker) newEntry(ns *Namespace, port *Port) entry {
	e := entry{
		nsid:   ns.nsid,
		shift:  uint8(bits.TrailingZeros32(ns.cfg.BlockSize)),
		barred: port.barred(ns.cfg.ANAGroup),
		blocks: ns.blocks,
	}
	if ns.cfg.ReadOnly {
		e.writable = nvme.StatusNamespaceWriteProtected | nvme.StatusDNR
	}
	if e.ch = w.cold.channels[ns]; e.ch == nil {
		ch, err := w.openChannel(ns)
		if err != nil {
			w.t.log("cannot open backend", "namespace", ns.nsid, "error", err)
			e.barred = nvme.StatusNamespaceNotReady
			return e
		}
		e.ch = ch
	}
	return e
}

func (w *worker) openChannel(ns *Namespace) (*channel, error) {
	ch, err := ns.cfg.Backend.Open(w.p)
	if err != nil {
		return nil, err
	}
	info := ns.cfg.Backend.Info()
	c := &channel{
		ch: ch, ns: ns, polled: !info.Inline,
		views: info.Views, stable: info.Stable, discards: info.Discards, blockSize: ns.cfg.BlockSize,
	}
	w.cold.channels[ns] = c
	ns.channels++
	if c.polled {
		w.channels = append(w.channels, c)
	}
	return c, nil
}

// barred is the status that I/O commands to an ANA group get, 0 if it is
// accessible.
func (p *Port) barred(group uint32) nvme.Status {
	switch p.state(group) {
	case nvme.ANAInaccessible:
		return nvme.StatusANAInaccessible
	case nvme.ANAPersistentLoss:
		return nvme.StatusANAPersistentLoss
	case nvme.ANAChange:
		return nvme.StatusANATransition
	}
	return 0
}

// retire prepares the channels of namespaces that are gone for being closed,
// when their last request is done.
func (w *worker) retire() {
	for _, v := range w.cold.views {
		if v.gen != v.sub.gen.Load() {
			w.renew(v)
		}
	}
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	for key := range w.cold.views {
		if key.sub.removed || key.port.removed {
			delete(w.cold.views, key) // what is connected keeps it
		}
	}
	for sub := range w.cold.totals {
		if sub.removed {
			delete(w.cold.totals, sub)
		}
	}
	for ns, ch := range w.cold.channels {
		if ns.removed {
			ch.retired = true
			w.untidy = true
		}
	}
}

// closeRetired closes what nothing uses any more.
func (w *worker) closeRetired() {
	for _, ch := range w.cold.channels {
		if ch.retired && ch.users == 0 {
			w.closeChannel(ch)
		}
	}
}

func (w *worker) closeChannel(ch *channel) {
	delete(w.cold.channels, ch.ns)
	if ch.polled {
		w.dropPolled(ch)
	}
	for c := range w.cold.conns {
		c.tx.forget()
	}
	ch.ch.Close()
	w.t.mu.Lock()
	ch.ns.channels--
	w.t.closeUnused(ch.ns)
	w.t.mu.Unlock()
}

func (w *worker) dropPolled(ch *channel) {
	for i, c := range w.channels {
		if c == ch {
			last := len(w.channels) - 1
			copy(w.channels[i:], w.channels[i+1:])
			w.channels[last] = nil
			w.channels = w.channels[:last]
			return
		}
	}
}
