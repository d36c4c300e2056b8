package nvme

import "time"

// NumberOfQueues is the value of FeatNumberOfQueues: what the host asks for in
// dword 11 and what the controller gives in dword 0 of the response, which may
// be fewer or more.
type NumberOfQueues uint32

// MakeNumberOfQueues composes the value from counts of I/O queues, each moved
// into 1 to 65535.
func MakeNumberOfQueues(sq, cq int) NumberOfQueues {
	count := func(n int) NumberOfQueues { return NumberOfQueues(min(max(n, 1), 0xffff) - 1) }
	return count(sq) | count(cq)<<16
}

// SQ returns the number of I/O submission queues, 1 to 65536.
func (n NumberOfQueues) SQ() int { return int(field(n, 0, 16)) + 1 }

// CQ returns the number of I/O completion queues, 1 to 65536.
func (n NumberOfQueues) CQ() int { return int(field(n, 16, 16)) + 1 }

// Arbitration is the value of FeatArbitration.
type Arbitration struct {
	Burst  uint8 // commands fetched at a time, power of two; 7 for no limit
	Low    uint8 // weights in commands minus one
	Medium uint8
	High   uint8
}

// Value returns dword 11.
func (a Arbitration) Value() uint32 {
	return uint32(a.Burst&7) | uint32(a.Low)<<8 | uint32(a.Medium)<<16 | uint32(a.High)<<24
}

// ParseArbitration reads dword 11 or the result.
func ParseArbitration(v uint32) Arbitration {
	return Arbitration{Burst: uint8(v & 7), Low: uint8(v >> 8), Medium: uint8(v >> 16), High: uint8(v >> 24)}
}

// PowerManagement is the value of FeatPowerManagement.
type PowerManagement struct {
	State    uint8 // power state, 0 to 31
	Workload uint8 // workload hint, 0 to 7
}

// Value returns dword 11.
func (p PowerManagement) Value() uint32 { return uint32(p.State&0x1f) | uint32(p.Workload&7)<<5 }

// ParsePowerManagement reads dword 11 or the result.
func ParsePowerManagement(v uint32) PowerManagement {
	return PowerManagement{State: uint8(field(v, 0, 5)), Workload: uint8(field(v, 5, 3))}
}

// Values of TemperatureThreshold.Sensor.
const (
	SensorComposite uint8 = 0x0 // 1 to 8 are the sensors of SMARTLog
	SensorAll       uint8 = 0xf // Set Features only
)

// TemperatureThreshold is the value of FeatTemperatureThreshold. Get Features
// takes Sensor and Under in dword 11 as well.
type TemperatureThreshold struct {
	Kelvin     uint16
	Sensor     uint8 // 0 to 8 or SensorAll
	Under      bool  // under temperature threshold, else over
	Hysteresis uint8 // kelvin, 0 to 7
}

// Value returns dword 11.
func (t TemperatureThreshold) Value() uint32 {
	return uint32(t.Kelvin) | uint32(t.Sensor&0xf)<<16 | flag[uint32](t.Under, 20) | uint32(t.Hysteresis&7)<<22
}

// ParseTemperatureThreshold reads dword 11 or the result.
func ParseTemperatureThreshold(v uint32) TemperatureThreshold {
	return TemperatureThreshold{
		Kelvin: uint16(v), Sensor: uint8(field(v, 16, 4)), Under: field(v, 20, 2) == 1, Hysteresis: uint8(field(v, 22, 3)),
	}
}

// ErrorRecovery is the value of FeatErrorRecovery (NVM Command Set
// Specification).
type ErrorRecovery struct {
	TimeLimit    time.Duration // for limited retry, 100 ms, rounded up; 0 for none
	DeallocError bool          // deallocated or unwritten logical block error (DULBE)
}

// Value returns dword 11.
func (e ErrorRecovery) Value() uint32 {
	return units(e.TimeLimit, 100*time.Millisecond, 0xffff) | flag[uint32](e.DeallocError, 16)
}

// ParseErrorRecovery reads dword 11 or the result.
func ParseErrorRecovery(v uint32) ErrorRecovery {
	return ErrorRecovery{TimeLimit: time.Duration(uint16(v)) * 100 * time.Millisecond, DeallocError: bit(v, 16)}
}

// InterruptCoalescing is the value of FeatInterruptCoalescing.
type InterruptCoalescing struct {
	Threshold uint8         // completion queue entries, minus one
	Time      time.Duration // in 100 us, rounded up, at most 25.5 ms; 0 for no delay
}

// Value returns dword 11.
func (i InterruptCoalescing) Value() uint32 {
	return uint32(i.Threshold) | units(i.Time, 100*time.Microsecond, 0xff)<<8
}

// ParseInterruptCoalescing reads dword 11 or the result.
func ParseInterruptCoalescing(v uint32) InterruptCoalescing {
	return InterruptCoalescing{Threshold: uint8(v), Time: time.Duration(field(v, 8, 8)) * 100 * time.Microsecond}
}

// InterruptVector is the value of FeatInterruptVector. Get Features takes
// Vector in dword 11 as well.
type InterruptVector struct {
	Vector        uint16
	CoalescingOff bool
}

// Value returns dword 11.
func (i InterruptVector) Value() uint32 { return uint32(i.Vector) | flag[uint32](i.CoalescingOff, 16) }

// ParseInterruptVector reads dword 11 or the result.
func ParseInterruptVector(v uint32) InterruptVector {
	return InterruptVector{Vector: uint16(v), CoalescingOff: bit(v, 16)}
}

// KeepAliveValue returns the value of FeatKeepAliveTimer: milliseconds, rounded
// up; 0 disables the timer.
func KeepAliveValue(d time.Duration) uint32 { return units(d, time.Millisecond, maxUint32) }

// ParseKeepAlive reads dword 11 or the result of FeatKeepAliveTimer.
func ParseKeepAlive(v uint32) time.Duration { return time.Duration(v) * time.Millisecond }

// ThermalManagement is the value of FeatThermalManagement; 0 disables a part.
type ThermalManagement struct {
	Light uint16 // thermal management temperature 1, kelvin
	Heavy uint16 // thermal management temperature 2, kelvin
}

// Value returns dword 11.
func (t ThermalManagement) Value() uint32 { return uint32(t.Light)<<16 | uint32(t.Heavy) }

// ParseThermalManagement reads dword 11 or the result.
func ParseThermalManagement(v uint32) ThermalManagement {
	return ThermalManagement{Light: uint16(v >> 16), Heavy: uint16(v)}
}

// LBAStatusAttributes is the value of FeatLBAStatusAttributes (NVM Command Set
// Specification).
type LBAStatusAttributes struct {
	ReportInterval time.Duration // in 100 ms, rounded up
	PollInterval   time.Duration // in 100 ms; told by the controller
}

// Value returns dword 11.
func (l LBAStatusAttributes) Value() uint32 {
	const unit = 100 * time.Millisecond
	return units(l.ReportInterval, unit, 0xffff) | units(l.PollInterval, unit, 0xffff)<<16
}

// ParseLBAStatusAttributes reads dword 11 or the result.
func ParseLBAStatusAttributes(v uint32) LBAStatusAttributes {
	const unit = 100 * time.Millisecond
	return LBAStatusAttributes{ReportInterval: time.Duration(uint16(v)) * unit, PollInterval: time.Duration(v>>16) * unit}
}

// FDPConfig is dword 12, and the result, of FeatFDP.
type FDPConfig struct {
	Enable bool
	Index  uint8 // configuration of ParseFDPConfigurations
}

// Value returns dword 12.
func (f FDPConfig) Value() uint32 { return flag[uint32](f.Enable, 0) | uint32(f.Index)<<8 }

// ParseFDPConfig reads dword 12 or the result.
func ParseFDPConfig(v uint32) FDPConfig { return FDPConfig{Enable: bit(v, 0), Index: uint8(v >> 8)} }

// Bits of FeatReservationMask: notifications that are masked.
const (
	ReservationMaskRegistration uint32 = 1 << 1 // registration preempted
	ReservationMaskReleased     uint32 = 1 << 2 // reservation released
	ReservationMaskPreempted    uint32 = 1 << 3 // reservation preempted
)

// Values of FeatWriteProtection.
const (
	WriteProtectNone       uint32 = 0
	WriteProtectOn         uint32 = 1
	WriteProtectPowerCycle uint32 = 2 // until the next power cycle
	WriteProtectPermanent  uint32 = 3
)
