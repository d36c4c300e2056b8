package nvme

import "structs"

// TelemetryBlockSize is the size of a telemetry data block, and of the header,
// in bytes. Offset and length of Get Log Page are multiples of it.
const TelemetryBlockSize = 512

// TelemetryHeader is the header of the Telemetry Host-Initiated and
// Controller-Initiated log pages, 512 bytes (Base Specification 2.1, figures
// "Telemetry Host-Initiated Log Page" and "Telemetry Controller-Initiated Log
// Page"). Data blocks follow it.
type TelemetryHeader struct {
	_                    structs.HostLayout
	LID                  LogID // LogTelemetryHost or LogTelemetryController
	_                    [4]byte
	IEEE                 [3]byte // OUI, least significant byte first; zero if none
	DataArea1Last        uint16  // last block of area 1; areas all start at block 1
	DataArea2Last        uint16
	DataArea3Last        uint16
	_                    [2]byte
	DataArea4Last        uint32
	_                    [360]byte
	HostScope            uint8 // host-initiated: 1 controller, 2 subsystem
	HostGeneration       uint8 // host-initiated: generation; controller-initiated: scope
	ControllerAvailable  uint8 // controller-initiated data is available
	ControllerGeneration uint8 // generation of the controller-initiated data
	ReasonID             [128]byte
}

// AppendBinary appends the 512 bytes of the structure.
func (h *TelemetryHeader) AppendBinary(b []byte) ([]byte, error) { return encode(b, h) }

// UnmarshalBinary reads the structure from the first 512 bytes of b.
func (h *TelemetryHeader) UnmarshalBinary(b []byte) error {
	if err := decode("telemetry header", b, h); err != nil {
		return err
	}
	if h.LID != LogTelemetryHost && h.LID != LogTelemetryController {
		return malformed("telemetry header", "log page identifier 0x%02x", uint8(h.LID))
	}
	return nil
}

// Size returns the size in bytes of the log page up to the end of a data area,
// 1 to 4, header included. An area ends at least where the one before does.
func (h *TelemetryHeader) Size(area int) uint64 {
	last := uint64(h.DataArea1Last)
	if area >= 2 {
		last = max(last, uint64(h.DataArea2Last))
	}
	if area >= 3 {
		last = max(last, uint64(h.DataArea3Last))
	}
	if area >= 4 {
		last = max(last, uint64(h.DataArea4Last))
	}
	return (last + 1) * TelemetryBlockSize
}
