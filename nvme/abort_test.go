package nvme

import (
	"context"
	"errors"
	"testing"
)

// Aborts stay within what the controller takes at once, and reach every piece
// in the end.
func TestAbortLimit(t *testing.T) {
	for _, acl := range []uint8{0, 2, 255} {
		d := newFakeDisk(512, 1024)
		d.id.ACL = acl
		r := newRig(t, d, &Config{AdminTimeout: Forever})
		r.blocksAtOnce(8)
		most, now, sent := 0, 0, 0
		m := d.mute()
		base := d.hook
		d.hook = func(fq *fakeQueue, rq *Request) (Status, bool) {
			if rq.Cmd.Opcode != AdminAbort || fq.qp.ID() != 0 {
				return base(fq, rq)
			}
			now++
			sent++
			most = max(most, now)
			r.p.AfterFunc(0, func() { // as late as the next pass
				now--
				fq.cpl = Completion{CID: rq.Cmd.CID}
				fq.abort(uint16(rq.Cmd.CDW10), uint16(rq.Cmd.CDW10>>16))
				fq.qp.Complete(rq, &fq.cpl)
			})
			return 0, false
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		call := outcome(func() error {
			_, err := r.ns.ReadAtContext(ctx, make([]byte, 30*8*512), 0)
			return err
		})
		eventually(t, "all pieces are out", func() (all bool) {
			r.on(func() { qp := r.c.blocking.qp.Load(); all = qp != nil && qp.InFlight() == 30 })
			return all
		})
		why := errors.New("had enough")
		cancel(why)
		if err := await(t, call); !errors.Is(err, why) {
			t.Fatal(err)
		}
		r.on(func() {
			if most > int(acl)+1 || sent != 30 {
				t.Errorf("ACL %d: %d aborts, %d at once", acl, sent, most)
			}
		})
		m.lift()
	}
}
