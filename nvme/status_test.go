package nvme

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestStatusFields(t *testing.T) {
	s := Status(0x7b82) // DNR, more, CRD 3, SCT 3, SC 82h
	if s.SCT() != SCTPath || s.SC() != 0x82 || s.CRD() != 3 || !s.More() || !s.DNR() || s.Code() != 0x382 {
		t.Errorf("0x7b82 decoded as sct %v sc %#x crd %d more %v dnr %v", s.SCT(), s.SC(), s.CRD(), s.More(), s.DNR())
	}
	if got := MakeStatus(SCTPath, 0x82).WithCRD(3) | StatusDNR | StatusMore; got != s {
		t.Errorf("composed %#x, want %#x", uint16(got), uint16(s))
	}
	if got := s.WithCRD(1).CRD(); got != 1 {
		t.Errorf("WithCRD(1).CRD() = %d", got)
	}
	c := Completion{StatusPhase: uint16(StatusLBAOutOfRange|StatusDNR)<<1 | 1}
	if c.Status() != StatusLBAOutOfRange|StatusDNR || !c.Phase() {
		t.Errorf("completion status %#x phase %v", c.Status(), c.Phase())
	}
}

func TestStatusErr(t *testing.T) {
	if err := StatusSuccess.Err(); err != nil {
		t.Errorf("success is %v", err)
	}
	if !(StatusSuccess | StatusMore).OK() {
		t.Error("success with the more bit is not OK")
	}
	err := fmt.Errorf("read: %w", (StatusLBAOutOfRange | StatusDNR).Err())
	if !errors.Is(err, StatusLBAOutOfRange) {
		t.Errorf("%v is not LBA Out of Range", err)
	}
	if errors.Is(err, StatusCapacityExceeded) || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v matches a foreign error", err)
	}
	var s Status
	if !errors.As(err, &s) || !s.DNR() {
		t.Errorf("errors.As gave %v", s)
	}
}

func TestStatusClasses(t *testing.T) {
	for _, s := range []Status{StatusInternalPathError, StatusANAInaccessible, StatusHostPathError | StatusDNR} {
		if !s.IsPath() {
			t.Errorf("%v is not path related", s)
		}
	}
	if StatusInvalidField.IsPath() || StatusUnrecoveredReadError.IsPath() || Status(0x7ff).IsPath() {
		t.Error("a status of another type is path related")
	}
	for s := Status(0); s < 0x800; s++ {
		want := s == 0x301 || s == 0x302 || s == 0x303
		if s.IsANA() != want || (s|StatusDNR).IsANA() != want {
			t.Errorf("%#x: IsANA %v", uint16(s), s.IsANA())
		}
	}
}

// The numbers stand here a second time, read from the figures of Base
// Specification 2.1 section 4.2.3 and NVM Command Set Specification 1.1
// section 3.1.1, against a slip in the constants.
func TestStatusNames(t *testing.T) {
	for _, c := range []struct {
		s    Status
		want string
	}{
		{0x000, "Successful Completion (sct 0x0, sc 0x00)"},
		{0x002, "Invalid Field in Command (sct 0x0, sc 0x02)"},
		{0x4002, "Invalid Field in Command (sct 0x0, sc 0x02, do not retry)"},
		{0x0821, "Command Interrupted (sct 0x0, sc 0x21, retry delay 1)"},
		{0x6281, "Unrecovered Read Error (sct 0x2, sc 0x81, more, do not retry)"},
		{0x00b, "Invalid Namespace or Format (sct 0x0, sc 0x0b)"},
		{0x01a, "Keep Alive Timeout Invalid (sct 0x0, sc 0x1a)"},
		{0x022, "Transient Transport Error (sct 0x0, sc 0x22)"},
		{0x080, "LBA Out of Range (sct 0x0, sc 0x80)"},
		{0x083, "Reservation Conflict (sct 0x0, sc 0x83)"},
		{0x101, "Invalid Queue Identifier (sct 0x1, sc 0x01)"},
		{0x10e, "Feature Not Changeable (sct 0x1, sc 0x0e)"},
		{0x11c, "Controller List Invalid (sct 0x1, sc 0x1c)"},
		{0x182, "Attempted Write to Read Only Range or Connect Invalid Parameters (sct 0x1, sc 0x82)"},
		{0x184, "Invalid Command ID or Connect Invalid Host (sct 0x1, sc 0x84)"},
		{0x191, "Authentication Required (sct 0x1, sc 0x91)"},
		{0x285, "Compare Failure (sct 0x2, sc 0x85)"},
		{0x300, "Internal Path Error (sct 0x3, sc 0x00)"},
		{0x302, "Asymmetric Access Inaccessible (sct 0x3, sc 0x02)"},
		{0x360, "Controller Pathing Error (sct 0x3, sc 0x60)"},
		{0x370, "Host Pathing Error (sct 0x3, sc 0x70)"},
		{0x371, "Command Aborted By Host (sct 0x3, sc 0x71)"},
		{0x07f, "reserved status 0x07f (sct 0x0, sc 0x7f)"},
		{0x472, "reserved status 0x472 (sct 0x4, sc 0x72)"},
		{0x0c1, "vendor specific status 0x0c1 (sct 0x0, sc 0xc1)"},
		{0x700, "vendor specific status 0x700 (sct 0x7, sc 0x00)"},
	} {
		if got := c.s.Error(); got != c.want {
			t.Errorf("%#x: %q, want %q", uint16(c.s), got, c.want)
		}
	}
}

func TestStatusNameFor(t *testing.T) {
	for _, c := range []struct {
		s    Status
		op   Opcode
		want string
	}{
		{0x180, OpFabrics, "Incompatible Format"},
		{0x180, OpDatasetManagement, "Conflicting Attributes"},
		{0x182, OpFabrics, "Connect Invalid Parameters"},
		{0x185, OpCopy, "Incompatible Namespace or Format"},
		{0x185, OpFabrics, "Invalid Queue Type"},
		{0x184, OpCancel, "Invalid Command ID"},
		{0x191, OpRead, "Authentication Required"},
		{0x197, OpRead, "Overlapping Memory Ranges"},
		{0x190, AdminGetLogPage, "Discover Restart"},
		{0x002, OpFabrics, "Invalid Field in Command"},
		{0x1ff, OpFabrics, "vendor specific status 0x1ff"},
	} {
		if got := c.s.NameFor(c.op); got != c.want {
			t.Errorf("%#x on %#x: %q, want %q", uint16(c.s), uint8(c.op), got, c.want)
		}
	}
	want := "Connect Invalid Parameters (sct 0x1, sc 0x82, do not retry)"
	if got := (StatusConnectInvalidParameters | StatusDNR).ErrorFor(OpFabrics); got != want {
		t.Errorf("ErrorFor: %q, want %q", got, want)
	}
}

// Every one of the 65536 values prints, and distinct codes of one type never
// share a name.
func TestStatusNamesTotal(t *testing.T) {
	seen := map[string]Status{}
	for v := range 1 << 16 {
		s := Status(v)
		if s.Error() == "" || !strings.Contains(s.Error(), fmt.Sprintf("sc 0x%02x", s.SC())) {
			t.Fatalf("%#x prints %q", v, s.Error())
		}
		if other, ok := seen[s.Name()]; ok && other != s.Code() {
			t.Fatalf("%#x and %#x are both %q", uint16(other), v, s.Name())
		}
		seen[s.Name()] = s.Code()
	}
	if len(statusNames) < 120 {
		t.Errorf("only %d statuses have a name", len(statusNames))
	}
	for s := range statusNames {
		if s != s.Code() || s.SCT() == SCTVendor || s.SC() >= 0xc0 {
			t.Errorf("named status %#x is no plain code", uint16(s))
		}
	}
}
