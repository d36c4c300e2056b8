package pcietest

import (
	"encoding/binary"

	"github.com/qpoll/qpoll/nvme"
)

// maxSegments bounds the segments that the SGL of one command may have, and
// maxDescriptors the descriptors of one segment: a list that goes in a circle
// comes to an end.
const (
	maxSegments    = 256
	maxDescriptors = 256 << 10
)

// locateSGL follows an SGL (Base Specification 4.3.2).
func (c *Controller) locateSGL(d nvme.SGLDescriptor, n uint64, u use) nvme.Status {
	left := n
	for range maxSegments {
		switch d.Type() {
		case nvme.SGLTypeSegment, nvme.SGLTypeLastSegment:
		default:
			if s := c.addDescriptor(d, &left, u); s != 0 {
				return s
			}
			return short(left)
		}
		next, last, s := c.sglSegment(d, &left, u)
		if s != 0 {
			return s
		}
		if last {
			return short(left)
		}
		d = next
	}
	return nvme.StatusInvalidSGLCount | nvme.StatusDNR
}

// short is the status of an SGL that is left bytes too short.
func short(left uint64) nvme.Status {
	if left > 0 {
		return nvme.StatusDataSGLLengthInvalid | nvme.StatusDNR
	}
	return 0
}

// sglSegment follows one segment, and returns the descriptor of the next.
func (c *Controller) sglSegment(d nvme.SGLDescriptor, left *uint64, u use) (next nvme.SGLDescriptor, last bool, s nvme.Status) {
	last = d.Type() == nvme.SGLTypeLastSegment
	if d.Subtype() != nvme.SGLSubtypeAddress {
		return next, last, nvme.StatusSGLTypeInvalid | nvme.StatusDNR
	}
	count := d.Length / nvme.SGLDescriptorSize
	if d.Length%nvme.SGLDescriptorSize != 0 || count == 0 || count > maxDescriptors {
		return next, last, nvme.StatusInvalidSGLSegment | nvme.StatusDNR
	}
	for i := range uint64(count) {
		b, s := c.whole(d.Address+i*nvme.SGLDescriptorSize, nvme.SGLDescriptorSize, useList)
		if s != 0 {
			return next, last, s
		}
		e := nvme.SGLFromDPTR([2]uint64{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])})
		segment := e.Type() == nvme.SGLTypeSegment || e.Type() == nvme.SGLTypeLastSegment
		final := i == uint64(count)-1
		switch {
		case segment && (last || !final), !last && final && !segment:
			// A segment is named by the last descriptor of the one before, only.
			return next, last, nvme.StatusInvalidSGLSegment | nvme.StatusDNR
		case segment:
			return e, false, 0
		}
		if s := c.addDescriptor(e, left, u); s != 0 {
			return next, last, s
		}
	}
	return next, last, 0
}

// addDescriptor takes the memory of a data block or bit bucket.
func (c *Controller) addDescriptor(d nvme.SGLDescriptor, left *uint64, u use) nvme.Status {
	n := uint64(d.Length)
	bucket := d.Type() == nvme.SGLTypeBitBucket
	switch {
	case d.Type() != nvme.SGLTypeDataBlock && !bucket, d.Subtype() != nvme.SGLSubtypeAddress:
		return nvme.StatusSGLTypeInvalid | nvme.StatusDNR
	case bucket && u == useWrite:
		return 0 // has no effect
	case n > *left:
		return nvme.StatusDataSGLLengthInvalid | nvme.StatusDNR
	}
	*left -= n
	if !bucket {
		return c.add(d.Address, n, u)
	}
	for n > 0 {
		k := min(n, uint64(len(c.bucket)))
		c.segs = append(c.segs, c.bucket[:k:k])
		n -= k
	}
	return 0
}
