package pcie

import (
	"time"

	"github.com/qpoll/qpoll/nvme"
)

// Quirk is a set of ways in which a controller departs from the specification
// that a polled driver must know of. What is of concern only to power
// management, to interrupts that are not MSI-X, or to the kernel's block layer
// is not listed.
type Quirk uint32

// The quirks.
const (
	// QuirkDelayReady: after CC.EN was cleared, the controller must not be asked
	// whether it is ready for 2.3 s, or it hangs.
	QuirkDelayReady Quirk = 1 << iota
	// QuirkShallowQueues: with more than one command in flight in an I/O queue,
	// the controller resets itself or loses data. They get two entries.
	QuirkShallowQueues
	// QuirkDMA48: the device drops address bits above the lower 48.
	QuirkDMA48
	// QuirkNoSGL: SGLs are announced and do not work.
	QuirkNoSGL
	// QuirkNotStandard: submission queue entries of 128 bytes, tags that are
	// shared between queues: not a controller that this driver can drive.
	QuirkNotStandard
	// QuirkMQES: where CAP.MQES is 0, which is not allowed, the controller takes
	// queues of 64 entries.
	QuirkMQES
	// QuirkSettle: an I/O queue takes no commands at once after it was made.
	QuirkSettle
	// QuirkStripe: commands are faster if they do not cross a multiple of a size
	// that stands in a vendor specific byte of Identify Controller.
	QuirkStripe
)

// How long the quirks wait.
const (
	readyDelay  = 2300 * time.Millisecond
	settleDelay = 100 * time.Microsecond
)

// quirkEntry names a device; its reason is what was seen.
type quirkEntry struct {
	vendor, device uint16
	quirks         Quirk
	name           string
}

// quirkTable is after the tables of the Linux driver (drivers/nvme/host/pci.c)
// and of SPDK (lib/nvme/nvme_quirks.c), which came by them the hard way.
var quirkTable = []quirkEntry{
	{0x1bb1, 0x0100, QuirkDelayReady, "Seagate Nytro Flash Storage"},
	{0x1c58, 0x0003, QuirkDelayReady, "HGST adapter"},
	{0x1c58, 0x0023, QuirkDelayReady, "WDC SN200 adapter"},
	{0x1c5f, 0x0540, QuirkDelayReady, "Memblaze Pblaze4 adapter"},
	{0x144d, 0xa808, QuirkDelayReady, "Samsung X5"},
	{0x144d, 0xa821, QuirkDelayReady | QuirkMQES, "Samsung PM1725"},
	{0x144d, 0xa822, QuirkDelayReady | QuirkMQES, "Samsung PM1725a"},
	{0x8086, 0x0953, QuirkStripe, "Intel 750, P3500, P3600, P3700"},
	{0x8086, 0x0a53, QuirkStripe, "Intel P3520"},
	{0x8086, 0x0a54, QuirkStripe, "Intel P4500, P4600"},
	{0x8086, 0x0a55, QuirkStripe, "Dell Express Flash P4600"},
	{0x80ee, 0x4e56, QuirkSettle, "VirtualBox emulated controller"},
	{0x106b, 0x2001, QuirkShallowQueues, "Apple controller of the MacBook8,1"},
	{0x106b, 0x2005, QuirkNotStandard, "Apple T2"},
	{0x1d0f, 0x0061, QuirkDMA48, "Amazon EC2 instance storage"},
	{0x1d0f, 0x0065, QuirkDMA48, "Amazon EC2 instance storage"},
	{0x1d0f, 0x8061, QuirkDMA48, "Amazon EBS"},
	{0x1d0f, 0xcd00, QuirkDMA48, "Amazon EC2 instance storage"},
	{0x1d0f, 0xcd01, QuirkDMA48, "Amazon EC2 instance storage"},
	{0x1d0f, 0xcd02, QuirkDMA48, "Amazon EC2 instance storage"},
}

// quirksOf returns what a device is known for.
func quirksOf(info Info) Quirk {
	var q Quirk
	for _, e := range quirkTable {
		if e.vendor == info.Vendor && e.device == info.Device {
			q |= e.quirks
		}
	}
	return q
}

// adjust corrects CAP for what the controller is known to get wrong, or not to
// stand.
func (q Quirk) adjust(c nvme.CAP) nvme.CAP {
	if q&QuirkMQES != 0 && c.MQES() == 0 {
		c |= 63
	}
	if q&QuirkShallowQueues != 0 && c.MQES() > 1 {
		c = c&^0xffff | 1
	}
	return c
}

// stripe returns the size in bytes whose multiples commands should not cross, 0
// if there is none: a power of two times the smallest page size of the
// controller, whose exponent is the fourth vendor specific byte.
func (q Quirk) stripe(id *nvme.IdentifyController, minPage uint32) uint32 {
	if q&QuirkStripe == 0 || id.VendorBytes[3] == 0 {
		return 0
	}
	if n := uint64(minPage) << min(id.VendorBytes[3], 32); n < 1<<32 {
		return uint32(n)
	}
	return 0
}
