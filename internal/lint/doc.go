// Package lint holds the rules of this repository that gofmt, go vet and
// staticcheck do not know, as functions over the source tree and as tests
// that apply them. A rule that cannot fail is worth nothing, so each has a
// test of its own that feeds it a bad tree and expects the report.
//
// The rules are in tables at the top of their files: who may import what
// (imports.go), what a hot file must not contain (hot_rules.go), which files
// must be hot (hotFiles), what must be documented (exported.go), and what no
// text may say (text.go, markdown.go).
//
// A file of the hot path declares itself by a comment line next to its
// package clause:
//
//	//qpoll:hot
//
// A single line of such a file is exempted by a trailing comment that gives
// the reason. An exemption without a reason, or one that exempts nothing, is
// itself reported:
//
//	q.err = fmt.Errorf("queue %d: %w", q.id, err) //qpoll:cold the queue is dead
package lint
