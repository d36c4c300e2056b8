package main

import (
	"fmt"
	"strconv"
)

// rate writes a number with the digits that matter.
func rate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// micro writes nanoseconds as microseconds with the digits that matter.
func micro(ns float64) string {
	switch us := ns / 1e3; {
	case us >= 1000:
		return fmt.Sprintf("%.0f", us)
	case us >= 100:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.2f", us)
	}
}

// plural writes a count and what is counted.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
