package nvme

import "time"

// SerialNumber returns SN without padding; bytes that do not print come as
// question marks.
func (c *IdentifyController) SerialNumber() string { return ascii(c.SN[:]) }

// ModelNumber returns MN like SerialNumber.
func (c *IdentifyController) ModelNumber() string { return ascii(c.MN[:]) }

// FirmwareRevision returns FR like SerialNumber.
func (c *IdentifyController) FirmwareRevision() string { return ascii(c.FR[:]) }

// SetSerialNumber fills SN, at most 20 bytes of s.
func (c *IdentifyController) SetSerialNumber(s string) { putASCII(c.SN[:], s) }

// SetModelNumber fills MN, at most 40 bytes of s.
func (c *IdentifyController) SetModelNumber(s string) { putASCII(c.MN[:], s) }

// SetFirmwareRevision fills FR, at most 8 bytes of s.
func (c *IdentifyController) SetFirmwareRevision(s string) { putASCII(c.FR[:], s) }

// SubsystemNQN returns the name of the subsystem, or a DecodeError when the
// field is empty, as with controllers before revision 1.2.1, or has no end.
func (c *IdentifyController) SubsystemNQN() (string, error) {
	return getNQN(c.SUBNQN[:], "subsystem NQN")
}

// SetSubsystemNQN fills SUBNQN; see NewConnectData for what it refuses.
func (c *IdentifyController) SetSubsystemNQN(nqn string) error {
	c.SUBNQN = [256]byte{}
	return putNQN(c.SUBNQN[:], "subsystem NQN", nqn)
}

// MaxTransferSize returns the largest data transfer of a command in bytes, and
// 0 for no limit. minPage is CAP.MinPageSize. A limit that no transfer reaches
// (MDTS of 20 and up) counts as none.
func (c *IdentifyController) MaxTransferSize(minPage uint32) uint64 {
	if c.MDTS == 0 || c.MDTS >= 20 {
		return 0
	}
	return uint64(minPage) << c.MDTS
}

// CommandQuiesceTime returns how long the controller may still work on
// commands after it has lost the host; 0 when it does not tell.
func (c *IdentifyController) CommandQuiesceTime() time.Duration {
	return time.Duration(c.CQT) * time.Millisecond
}

// KeepAliveGranularity returns the unit in which the controller counts the
// keep alive timeout; 0 when it has no keep alive timer.
func (c *IdentifyController) KeepAliveGranularity() time.Duration {
	return time.Duration(c.KAS) * 100 * time.Millisecond
}

// ANATransitionTime returns how long an ANA transition may take.
func (c *IdentifyController) ANATransitionTime() time.Duration {
	return time.Duration(c.ANATT) * time.Second
}

// RetryDelay returns the time to wait before a command is retried whose status
// has the retry delay index crd (Status.CRD); 0 for none.
func (c *IdentifyController) RetryDelay(crd uint8) time.Duration {
	if crd == 0 || crd > 3 {
		return 0
	}
	return time.Duration(c.CRDT[crd-1]) * 100 * time.Millisecond
}

// ShutdownTime returns RTD3E: how long a normal shutdown takes typically; 0
// when it is not told.
func (c *IdentifyController) ShutdownTime() time.Duration {
	return time.Duration(c.RTD3E) * time.Microsecond
}

// ReportsANA tells whether the subsystem has asymmetric namespace access.
func (c *IdentifyController) ReportsANA() bool { return c.CMIC&CMICANAReporting != 0 }

// IsDiscovery tells whether this is a discovery controller.
func (c *IdentifyController) IsDiscovery() bool { return c.CNTRLTYPE == ControllerTypeDiscovery }

// CapsuleDataSize returns how many bytes of data fit into the command capsule
// of an I/O queue after the submission queue entry and the in-capsule data
// offset. It means something over fabrics only.
func (c *IdentifyController) CapsuleDataSize() uint64 {
	size, used := uint64(c.IOCCSZ)*16, CommandSize+c.CapsuleDataOffset()
	if size <= used {
		return 0
	}
	return size - used
}

// CapsuleDataOffset returns the distance in bytes from the end of the
// submission queue entry to the data in the capsule of an I/O queue. It is 0 on
// the admin queue whatever this says.
func (c *IdentifyController) CapsuleDataOffset() uint64 { return uint64(c.ICDOFF) * 16 }

// AbortLimit returns the number of Abort commands that may be outstanding, 1
// to 256.
func (c *IdentifyController) AbortLimit() int { return int(c.ACL) + 1 }

// AsyncEventLimit returns the number of Asynchronous Event Requests that may
// be outstanding, 1 to 256.
func (c *IdentifyController) AsyncEventLimit() int { return int(c.AERL) + 1 }

// ErrorLogEntries returns the number of entries of the Error Information log,
// 1 to 256.
func (c *IdentifyController) ErrorLogEntries() int { return int(c.ELPE) + 1 }

// MaxNamespaces returns how many namespaces the subsystem may have, at most NN.
func (c *IdentifyController) MaxNamespaces() uint32 {
	if c.MNAN == 0 {
		return c.NN
	}
	return min(c.MNAN, c.NN)
}

// FirmwareSlots returns the number of firmware slots, and whether the first is
// read only.
func (c *IdentifyController) FirmwareSlots() (n int, firstReadOnly bool) {
	return int(field(c.FRMW, 1, 3)), bit(c.FRMW, 0)
}

// FirmwareWithoutReset tells whether firmware may be activated without a reset.
func (c *IdentifyController) FirmwareWithoutReset() bool { return bit(c.FRMW, 4) }

// PowerStates returns the valid power state descriptors, 1 to 32.
func (c *IdentifyController) PowerStates() []PowerState {
	return c.PSD[:min(int(c.NPSS)+1, len(c.PSD))]
}

// MaxPower returns the maximum power in microwatts; 0 when it is not told.
func (p *PowerState) MaxPower() uint64 {
	if bit(p.Flags, 0) {
		return uint64(p.MP) * 100
	}
	return uint64(p.MP) * 10000
}

// NonOperational tells whether the controller takes no I/O in this state.
func (p *PowerState) NonOperational() bool { return bit(p.Flags, 1) }

// EntryLatency returns the longest time to enter the state.
func (p *PowerState) EntryLatency() time.Duration { return time.Duration(p.ENLAT) * time.Microsecond }

// ExitLatency returns the longest time to leave the state.
func (p *PowerState) ExitLatency() time.Duration { return time.Duration(p.EXLAT) * time.Microsecond }

// IdlePower returns the typical idle power in microwatts; 0 when it is not
// told.
func (p *PowerState) IdlePower() uint64 { return scaledPower(p.IDLP, p.IPS>>6) }

// ActivePower returns the largest average power in microwatts under workload
// (1 to 2; 0 for none); 0 when it is not told.
func (p *PowerState) ActivePower() (power uint64, workload uint8) {
	return scaledPower(p.ACTP, p.APWS>>6), p.APWS & 7
}

// scaledPower gives microwatts for scale 1 (0.0001 W) and 2 (0.01 W).
func scaledPower(v uint16, scale uint8) uint64 {
	switch scale {
	case 1:
		return uint64(v) * 100
	case 2:
		return uint64(v) * 10000
	}
	return 0
}
