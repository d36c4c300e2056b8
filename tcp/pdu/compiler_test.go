package pdu

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestCompiler holds the compiler's view of the data path to what the package
// promises: accessors and encoders are inlined, and indexing the views needs no
// bounds checks.
func TestCompiler(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m -d=ssa/check_bce/debug=1", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	for _, f := range []string{
		"(*Common).Type", "(*Common).PLEN", "(*Layout).Finish", "(*Layout).PLEN", "Shape.PDO", "Shape.Data",
		"(*CapsuleCmd).Encode", "(*CapsuleCmd).Command", "(*CapsuleCmd).CID",
		"(*CapsuleResp).Encode", "(*CapsuleResp).Completion", "(*CapsuleResp).CID",
		"(*H2CData).Encode", "(*H2CData).DATAL", "(*C2HData).Encode", "(*C2HData).DATAL", "(*R2T).Encode", "(*R2T).R2TL",
	} {
		if !strings.Contains(text, "can inline "+f+"\n") {
			t.Errorf("%s is not inlined", f)
		}
	}
	checked := regexp.MustCompile(`(?m)^\./(common|capsule|connect|data|receiver)\.go:.*Found Is.*InBounds$`)
	for _, line := range checked.FindAllString(text, -1) {
		t.Errorf("bounds check: %s", line)
	}
	if !strings.Contains(text, "Found IsSliceInBounds") {
		t.Error("the compiler reports no bounds checks at all: the test is blind")
	}
}
