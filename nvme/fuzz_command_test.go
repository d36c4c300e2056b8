package nvme

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// commandCheck parses a command; when it is taken, what comes out has to build
// a command that parses into the same. A value that a command can hold and the
// builder refuses (an offset that is not aligned) is a RangeError.
type commandCheck func(t *testing.T, cmd *Command)

func commandOf[T comparable](parse func(*Command) (T, error)) commandCheck {
	return func(t *testing.T, cmd *Command) {
		v, err := parse(cmd)
		if err != nil {
			var d *DecodeError
			if !errors.As(err, &d) {
				t.Fatalf("%T: error %v is not a DecodeError", v, err)
			}
			return
		}
		var again Command
		switch b := any(v).(type) {
		case builder:
			again = b.Command()
		case checkedBuilder:
			again, err = b.Command()
		}
		if err != nil {
			var r *RangeError
			if !errors.As(err, &r) {
				t.Fatalf("%T: error %v is not a RangeError", v, err)
			}
			return
		}
		if w, err := parse(&again); err != nil || w != v {
			t.Fatalf("%+v comes back as %+v, %v", v, w, err)
		}
	}
}

var commands = []commandCheck{
	commandOf(ParseConnect), commandOf(ParsePropertyGet), commandOf(ParsePropertySet), commandOf(ParseAuth),
	commandOf(ParseIdentify), commandOf(ParseGetLogPage), commandOf(ParseGetFeatures), commandOf(ParseSetFeatures),
	commandOf(ParseCreateCQ), commandOf(ParseCreateSQ), commandOf(ParseAbort), commandOf(ParseCancel),
	commandOf(ParseNamespaceManagement), commandOf(ParseNamespaceAttachment), commandOf(ParseFormat),
	commandOf(ParseFirmwareDownload), commandOf(ParseFirmwareCommit), commandOf(ParseSanitize), commandOf(ParseSelfTest),
	commandOf(ParseLockdown), commandOf(ParseSecurity), commandOf(ParseVirtualization), commandOf(ParseGetLBAStatus),
	commandOf(ParseIO), commandOf(ParseDSM), commandOf(ParseCopy), commandOf(ParseHandleStatusCommand), commandOf(ParseHandleUpdate),
	commandOf(ParseReservationRegister), commandOf(ParseReservationAcquire), commandOf(ParseReservationRelease),
	commandOf(ParseReservationReport),
}

func FuzzCommands(f *testing.F) {
	for op := range 256 {
		f.Add(append([]byte{byte(op), 0, 0, 0, byte(op % 9)}, make([]byte, 59)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var cmd Command
		if len(b) < 64 {
			b = append(b, make([]byte, 64-len(b))...)
		}
		if err := decode("command", b, &cmd); err != nil {
			t.Fatal(err)
		}
		for _, check := range commands {
			check(t, &cmd)
		}
		if s := AdminName(cmd.Opcode) + IOName(cmd.Opcode) + cmd.FabricsType().String(); s == "" {
			t.Fatal("no name")
		}
		if got := SGLFromDPTR(cmd.DPTR).DPTR(); got[0] != cmd.DPTR[0] || uint32(got[1]) != uint32(cmd.DPTR[1]) || got[1]>>56 != cmd.DPTR[1]>>56 {
			t.Fatalf("data pointer %#x comes back as %#x", cmd.DPTR, got)
		}
		checkFeatureValues(t, cmd.CDW11)
	})
}

func checkFeatureValues(t *testing.T, v uint32) {
	t.Helper()
	if a := ParseArbitration(v); ParseArbitration(a.Value()) != a {
		t.Fatalf("arbitration %#x", v)
	}
	if a := ParsePowerManagement(v); ParsePowerManagement(a.Value()) != a {
		t.Fatalf("power management %#x", v)
	}
	if a := ParseTemperatureThreshold(v); ParseTemperatureThreshold(a.Value()) != a {
		t.Fatalf("temperature threshold %#x", v)
	}
	if a := ParseErrorRecovery(v); ParseErrorRecovery(a.Value()) != a {
		t.Fatalf("error recovery %#x", v)
	}
	if a := ParseInterruptCoalescing(v); ParseInterruptCoalescing(a.Value()) != a {
		t.Fatalf("interrupt coalescing %#x", v)
	}
	if a := ParseInterruptVector(v); ParseInterruptVector(a.Value()) != a {
		t.Fatalf("interrupt vector %#x", v)
	}
	if ThermalManagement.Value(ParseThermalManagement(v)) != v || LBAStatusAttributes.Value(ParseLBAStatusAttributes(v)) != v || KeepAliveValue(ParseKeepAlive(v)) != v {
		t.Fatalf("value %#x", v)
	}
	if n := NumberOfQueues(v); n.SQ() < 1 || n.SQ() > 65536 || n.CQ() < 1 || n.CQ() > 65536 {
		t.Fatalf("number of queues %#x", v)
	}
}

// FuzzResults takes every result and every property through its accessors.
func FuzzResults(f *testing.F) {
	f.Add(uint64(0), uint16(0))
	f.Add(uint64(math.MaxUint64), uint16(0xffff))
	f.Fuzz(func(t *testing.T, result uint64, status uint16) {
		e := AsyncEvent(result)
		if e.String() == "" || MakeAsyncEvent(e.Type(), e.Info(), e.LogPage(), e.Parameter()) != e&^0xff0000f8 {
			t.Fatalf("event %#x: %v", result, e)
		}
		for _, v := range []any{
			ParseConnectResponse(result), ParseInvalidParameter(result), ParseCancelResult(result), CAP(result), CC(result), CSTS(result),
			CRTO(result), AQA(result), VS(result), CMBLOC(result), CMBSZ(result), CMBMSC(result), CMBSTS(result), PMRCAP(result),
			PMRSTS(result), BPINFO(result), ElasticityBuffer(result), WriteThroughput(result), e,
		} {
			callAccessors(v)
		}
		if off, size, ok := CMBSZ(result).Range(CMBLOC(result >> 32)); ok && off+size < off {
			t.Fatalf("controller memory buffer of %d bytes at %d", size, off)
		}
		s := Status(status) & 0x7fff
		if s.OK() != (s.Err() == nil) || !errors.Is(s|StatusDNR|StatusMore, s) || s.Code() != s&0x7ff {
			t.Fatalf("status %#x", status)
		}
		if text := s.Error(); text == "" || strings.Contains(text, "%!") {
			t.Fatalf("status %#x is %q", status, text)
		}
		b := binary.LittleEndian.AppendUint64(nil, result)
		var ts Timestamp
		copy(ts[:], b)
		callAccessors(ts)
	})
}
