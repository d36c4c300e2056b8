package pcietest

import (
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// registers are the controller properties (Base Specification 3.1.4).
type registers struct {
	cc     nvme.CC
	csts   nvme.CSTSFields
	intms  uint32
	aqa    nvme.AQA
	asq    uint64
	acq    uint64
	cmbmsc nvme.CMBMSC
	cmbsts uint32

	// readyAt is when enabling or disabling is complete, shutAt when a shutdown
	// is: times of Poll, 0 if there is nothing to wait for, or never.
	readyAt, shutAt int64

	vanished  bool              // all reads give ones
	overrides map[uint32]uint64 // see Controller.Override
}

const never = int64(1<<63 - 1)

// after returns the time d from now, 0 for at once.
func (c *Controller) after(d time.Duration) int64 {
	switch {
	case d < 0:
		return never
	case d == 0:
		return 0
	}
	return c.now + int64(d)
}

// regsDue completes state changes that are due.
func (c *Controller) regsDue() (n int) {
	r := &c.regs
	if r.readyAt != 0 && c.now >= r.readyAt && r.readyAt != never {
		r.readyAt = 0
		c.settle()
		n++
	}
	if r.shutAt != 0 && c.now >= r.shutAt && r.shutAt != never {
		r.shutAt = 0
		r.csts.SHST = nvme.CSTSSHSTComplete
		n++
	}
	return n
}

// capabilities is CAP.
func (c *Controller) capabilities() nvme.CAP {
	f := nvme.CAPFields{
		MQES: uint16(c.cfg.QueueEntries - 1), CQR: true, TO: max(0, c.cfg.Timeout), DSTRD: c.cfg.DoorbellStride,
		CSS: nvme.CAPCSSNVM | nvme.CAPCSSIOCS, MPSMIN: c.cfg.MinPage, MPSMAX: c.cfg.MaxPage,
		CMBS: c.cmb != nil, NSSRS: true, CRWMS: c.cfg.Version.AtLeast(nvme.Version20),
	}
	if c.cfg.Weighted {
		f.AMS = nvme.CAPAMSWeightedRoundRobin
	}
	return f.CAP()
}

// cmbLocation and cmbSize are CMBLOC and CMBSZ, which show once CMBMSC.CRE is
// set.
func (c *Controller) cmbLocation() uint32 {
	if c.cmb == nil || !c.regs.cmbmsc.CRE() {
		return 0
	}
	return cmbBAR | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 // lists, data and queues may be mixed
}

func (c *Controller) cmbSize() uint32 {
	if c.cmb == nil || !c.regs.cmbmsc.CRE() {
		return 0
	}
	v := uint32(len(c.cmb.b)/4096) << 12 // units of 4 KiB
	for i, no := range []bool{c.cfg.CMB.NoSQ, c.cfg.CMB.NoCQ, c.cfg.CMB.NoLists, c.cfg.CMB.NoReads, c.cfg.CMB.NoWrites} {
		if !no {
			v |= 1 << i
		}
	}
	return v
}

// register returns the value of the register that begins at off, and its size
// in bytes; 0 for what is none.
func (c *Controller) register(off uint32) (v uint64, size int) {
	r := &c.regs
	size = nvme.PropertySize(off)
	if o, ok := r.overrides[off]; ok {
		return o, size
	}
	switch off {
	case nvme.RegCAP:
		v = uint64(c.capabilities())
	case nvme.RegVS:
		v = uint64(c.cfg.Version)
	case nvme.RegINTMS, nvme.RegINTMC:
		v = uint64(r.intms)
	case nvme.RegCC:
		v = uint64(r.cc)
	case nvme.RegCSTS:
		v = uint64(r.csts.CSTS())
	case nvme.RegAQA:
		v = uint64(r.aqa)
	case nvme.RegASQ:
		v = r.asq
	case nvme.RegACQ:
		v = r.acq
	case nvme.RegCMBLOC:
		v = uint64(c.cmbLocation())
	case nvme.RegCMBSZ:
		v = uint64(c.cmbSize())
	case nvme.RegCMBMSC:
		v = uint64(r.cmbmsc)
	case nvme.RegCMBSTS:
		v = uint64(r.cmbsts)
	case nvme.RegCRTO:
		if c.cfg.Version.AtLeast(nvme.Version20) {
			v = uint64(nvme.MakeCRTO(max(0, c.cfg.Timeout), 0))
		}
	}
	return v, size
}

// readRegisters reads n bytes, 4 or 8, of the register space at off.
func (c *Controller) readRegisters(off uint32, n int) uint64 {
	if c.regs.vanished {
		return ^uint64(0) >> (64 - 8*n)
	}
	if n == 8 {
		if v, size := c.register(off); size == 8 {
			return v
		}
		return c.readRegisters(off, 4) | c.readRegisters(off+4, 4)<<32
	}
	if v, size := c.register(off); size != 0 {
		return v & 0xffffffff
	}
	if v, size := c.register(off - 4); size == 8 {
		return v >> 32
	}
	return 0
}

// writeRegisters writes n bytes, 4 or 8, of the register space at off.
func (c *Controller) writeRegisters(off uint32, n int, v uint64) {
	if c.regs.vanished || c.gone.Load() {
		return
	}
	old, size := c.register(off)
	switch {
	case size == 8 && n == 4:
		v |= old &^ 0xffffffff
	case size == 0 && n == 4:
		if old, size = c.register(off - 4); size != 8 {
			return
		}
		off, v = off-4, old&0xffffffff|v<<32
	case n == 8 && size != 8:
		c.writeRegisters(off, 4, v&0xffffffff)
		c.writeRegisters(off+4, 4, v>>32)
		return
	}
	c.writeRegister(off, v)
}

func (c *Controller) writeRegister(off uint32, v uint64) {
	r := &c.regs
	switch off {
	case nvme.RegINTMS:
		r.intms |= uint32(v)
	case nvme.RegINTMC:
		r.intms &^= uint32(v)
	case nvme.RegCC:
		c.configure(nvme.CC(v))
	case nvme.RegCSTS:
		r.csts.NSSRO = r.csts.NSSRO && v&(1<<4) == 0
	case nvme.RegNSSR:
		if uint32(v) == nvme.NSSRReset {
			c.resetAll()
			r.csts.NSSRO = true
		}
	case nvme.RegAQA:
		r.aqa = nvme.AQA(v) & 0x0fff0fff
	case nvme.RegASQ:
		r.asq = v &^ 0xfff
	case nvme.RegACQ:
		r.acq = v &^ 0xfff
	case nvme.RegCMBMSC:
		c.configureCMB(nvme.CMBMSC(v))
	}
}

// configureCMB takes a new CMBMSC. A range of addresses that wraps is invalid.
func (c *Controller) configureCMB(v nvme.CMBMSC) {
	r := &c.regs
	if c.cmb == nil {
		return
	}
	c.forget()
	r.cmbsts = 0
	if v.CMSE() && v.CBA()+uint64(len(c.cmb.b)) < v.CBA() {
		r.cmbsts = 1
		v &^= 1 << 1
	}
	r.cmbmsc = v
}

// configure takes a new value of CC (Base Specification 3.1.4.5).
func (c *Controller) configure(cc nvme.CC) {
	r := &c.regs
	was := r.cc
	r.cc = cc
	switch {
	case cc.EN() && !was.EN():
		c.start(cc)
	case !cc.EN() && was.EN():
		c.resetController()
		if r.readyAt = c.after(c.cfg.ReadyTime); r.readyAt == 0 {
			c.settle()
		}
	}
	switch {
	case cc.SHN() != nvme.CCSHNNone && was.SHN() == nvme.CCSHNNone:
		c.shutDown()
	case cc.SHN() == nvme.CCSHNNone && was.SHN() != nvme.CCSHNNone:
		r.csts.SHST, r.shutAt = nvme.CSTSSHSTNormal, 0
	}
}

// start begins to enable the controller.
func (c *Controller) start(cc nvme.CC) {
	r := &c.regs
	if !c.acceptable(cc) {
		r.csts.CFS = true
		return
	}
	if r.csts.SHST != nvme.CSTSSHSTNormal {
		r.csts.SHST, r.shutAt = nvme.CSTSSHSTNormal, 0
	}
	c.page = cc.PageSize()
	if r.readyAt = c.after(c.cfg.ReadyTime); r.readyAt == 0 {
		c.settle()
	}
}

// acceptable checks what the host has configured before it sets CC.EN.
func (c *Controller) acceptable(cc nvme.CC) bool {
	r := &c.regs
	offset := uint64(cc.PageSize()) - 1
	css := cc.CSS()
	return cc.MPS() >= c.cfg.MinPage && cc.MPS() <= c.cfg.MaxPage &&
		(css == nvme.CCCSSNVM || css == nvme.CCCSSAll || css == nvme.CCCSSAdmin) &&
		(cc.AMS() == nvme.CCAMSRoundRobin || cc.AMS() == nvme.CCAMSWeightedRoundRobin && c.cfg.Weighted) &&
		r.aqa.SQEntries() >= 2 && r.aqa.CQEntries() >= 2 && r.asq&offset == 0 && r.acq&offset == 0
}

// settle completes enabling or disabling.
func (c *Controller) settle() {
	r := &c.regs
	if !r.cc.EN() {
		r.csts.RDY = false
		return
	}
	c.clearDoorbells()
	cq := c.newCQ(0, r.acq, uint32(r.aqa.CQEntries()))
	cq.enabled = true
	c.newSQ(0, r.asq, uint32(r.aqa.SQEntries()), cq)
	c.alive = c.now
	c.ready, r.csts.RDY = true, true
}

// resetController is a controller level reset: queues are gone, what was
// outstanding never completes, features have their defaults.
func (c *Controller) resetController() {
	r := &c.regs
	c.stats.Resets++
	c.ready = false
	c.dropQueues()
	c.dropHeld()
	c.shadow = shadow{}
	c.features.reset(&c.cfg)
	c.events = events{}
	r.csts.CFS, r.csts.PP, r.intms = false, false, 0
	if !r.csts.RDY {
		r.readyAt = 0
	}
}

// resetAll is what the controller is like after power-on or a function level
// reset.
func (c *Controller) resetAll() {
	if c.regs.cc.EN() {
		c.resetController()
	}
	o, v := c.regs.overrides, c.regs.vanished
	c.regs = registers{overrides: o, vanished: v}
	c.features.reset(&c.cfg)
	c.page = 4096 << c.cfg.MinPage
	c.master = false
	c.config.command = 0
	c.clearDoorbells()
	c.forget()
}

// shutDown processes a shutdown notification.
func (c *Controller) shutDown() {
	r := &c.regs
	for _, n := range c.spaces {
		if s, ok := n.cfg.Backend.(syncer); ok {
			_ = s.Sync() // a shutdown has no way to fail
		}
	}
	r.csts.SHST = nvme.CSTSSHSTInProgress
	if r.shutAt = c.after(c.cfg.ShutdownTime); r.shutAt == 0 {
		r.csts.SHST = nvme.CSTSSHSTComplete
	}
}
