package lint

import "testing"

func TestDocsReports(t *testing.T) {
	const bad = `package nvme

type Bare struct{}

func Func() {}

func (b *Bare) Method() {}

func (b hidden[T]) Method() {}

type hidden[T any] struct{ X int }

const Max = 1

var Min, min = 1, 2

// Grouped types need their own.
type (
	Grouped int
)

// Options is documented, its fields are not.
type Options struct {
	Depth int

	// Low and High bound it.
	Low  int
	High int

	After int
}

// Transport is documented, its methods are not; but Reset is.
type Transport interface {
	Dial() error
	Close() error // closes
	Reset() error
}
`
	const good = `// Package nvme is documented.
package nvme

import "structs"

// Command is on the wire.
type Command struct {
	_   structs.HostLayout
	CID uint16
}

func (c *Command) String() string { return "" }

// Status codes.
const (
	StatusA = iota
	StatusB
)

const (
	StatusC = 3 // trailing
	// StatusD is above.
	StatusD = 4
)

// Ring is generic.
type Ring[K, V any] struct {
	Head int // consumer
	tail int
}

// Len is documented.
func (r *Ring[K, V]) Len() int { return 0 }

func (r *Ring[K, V]) grow() {}
`
	expect(t, CheckDocs(tree(t, map[string]string{"nvme/a.go": bad, "nvme/b.go": good})),
		"nvme/a.go:3: exported type Bare",
		"nvme/a.go:5: exported function Func",
		"nvme/a.go:7: exported method Method",
		"nvme/a.go:13: exported const Max",
		"nvme/a.go:15: exported var Min",
		"nvme/a.go:19: exported type Grouped",
		"nvme/a.go:24: exported field Depth",
		"nvme/a.go:30: exported field After",
		"nvme/a.go:35: exported method Dial",
	)
}

func TestDocsScope(t *testing.T) {
	tr := tree(t, map[string]string{
		"bench/main.go":       "// Command bench measures.\npackage main\n\nfunc Exported() {}\n",
		"internal/sys/a.go":   "// Package sys calls.\npackage sys\n\nfunc Exported() {}\n",
		"internal/mute/a.go":  "package mute\n",
		"examples/mute/b.go":  "package main\n",
		"nvme/doc.go":         "// Package nvme is documented in one file.\npackage nvme\n",
		"nvme/a.go":           "package nvme\n",
		"nvme/export_test.go": "package nvme\n\nfunc Exported() {}\n",
		"onlytests/a_test.go": "package onlytests\n",
	})
	expect(t, CheckDocs(tr), "internal/mute/a.go:1: package example.com/m/internal/mute", "examples/mute/b.go:1: package")
}
