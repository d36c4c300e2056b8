package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// checkIOPS judges the JSON that bench writes.
func checkIOPS(_ context.Context, args []string) error {
	if len(args) != 0 {
		return errors.New("usage: ci iops < JSON")
	}
	n, err := iops(os.Stdin)
	if err != nil {
		return err
	}
	fmt.Printf("bench: %.0f IOPS\n", n)
	return nil
}

// iops returns the largest member named iops anywhere in a JSON document,
// which must be above zero.
func iops(r io.Reader) (float64, error) {
	dec := json.NewDecoder(r)
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return 0, fmt.Errorf("not JSON: %w", err)
	}
	if dec.More() {
		return 0, errors.New("more than one JSON document")
	}
	best, found := 0.0, false
	walk(doc, func(name string, v float64) {
		if strings.EqualFold(name, "iops") {
			best, found = max(best, v), true
		}
	})
	switch {
	case !found:
		return 0, errors.New("no member iops")
	case best <= 0:
		return 0, errors.New("no I/O done")
	}
	return best, nil
}

// walk calls visit for every member of doc whose value is a number.
func walk(doc any, visit func(name string, v float64)) {
	switch doc := doc.(type) {
	case map[string]any:
		for name, v := range doc {
			if f, ok := v.(float64); ok {
				visit(name, f)
			}
			walk(v, visit)
		}
	case []any:
		for _, v := range doc {
			walk(v, visit)
		}
	}
}
