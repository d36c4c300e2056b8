package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/qpoll/qpoll/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func TestHash(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	// What was never written reads as zeros.
	if want := fmt.Sprintf("16777216 bytes, SHA-256 %x\n", sha256.Sum256(make([]byte, 16<<20))); out.String() != want {
		t.Errorf("output %q, want %q", &out, want)
	}
}
