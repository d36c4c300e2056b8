package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	contents := func() string {
		b, err := os.ReadFile(name)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	open := func() *output {
		t.Helper()
		o, err := openOutput(name)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	// What is given up leaves nothing behind, or what was there before.
	open().abandon()
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	o := open()
	if err := o.replace([]byte("first results")); err != nil {
		t.Fatal(err)
	}
	o.abandon()
	if got := contents(); got != "first results" {
		t.Errorf("contents %q", got)
	}
	open().abandon()
	if got := contents(); got != "first results" {
		t.Errorf("contents %q", got)
	}
	if err := open().replace([]byte("second")); err != nil || contents() != "second" {
		t.Errorf("contents %q, %v", contents(), err)
	}
	null, err := openOutput(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := null.replace([]byte("x")); err != nil {
		t.Errorf("%s: %v", os.DevNull, err)
	}
}
