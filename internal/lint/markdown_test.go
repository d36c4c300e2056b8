package lint

import (
	"reflect"
	"strings"
	"testing"
)

// page writes a page with ”' for the fences.
func page(s string) string { return strings.ReplaceAll(s, "'''", "```") }

func TestBlocks(t *testing.T) {
	got := Blocks([]byte(page(`# Title

'''sh run=test
go test ./...
'''

~~~~ text
'''
~~~
~~~~
    '''sh
   '''go file=a.go extra
a
`)))
	want := []Block{
		{Line: 3, Lang: "sh", Tags: []string{"run=test"}, Body: "go test ./...\n"},
		{Line: 7, Lang: "text", Tags: []string{}, Body: "```\n~~~\n"},
		{Line: 12, Lang: "go", Tags: []string{"file=a.go", "extra"}, Body: "a\n"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("blocks\n%+v, want\n%+v", got, want)
	}
	if v, ok := got[0].Tag("run"); v != "test" || !ok {
		t.Errorf("tag run = %q, %v", v, ok)
	}
	if v, ok := got[2].Tag("extra"); v != "" || !ok {
		t.Errorf("tag extra = %q, %v", v, ok)
	}
	if _, ok := got[0].Tag("ru"); ok {
		t.Error("tag ru is there")
	}
}

func TestMarkdownReports(t *testing.T) {
	for _, tt := range []struct{ block, want string }{
		{"'''\nls\n'''", "a code block without a language"},
		{"'''sh\nls\n'''", "a shell block says either run"},
		{"'''bash run manual\nls\n'''", "a shell block says either run"},
		{"'''sh run=nosuch\nls\n'''", `no gate "nosuch"`},
		{"'''sh run\n\n'''", "an empty block"},
		{"'''go\nx := 1\n'''", "a Go block says file=PATH"},
		{"'''go file=gone.go\nx := 1\n'''", `no file "gone.go"`},
		{"'''go file=ex/main.go\nx := 2\n'''", "differs from ex/main.go"},
		{"'''go file=ex/main.go\n'''", "differs from ex/main.go"},

		{"'''sh run\nls\n'''", ""},
		{"'''sh run=test\nls\n'''", ""},
		{"'''console manual\nls\n'''", ""},
		{"'''text\nls\n'''", ""},
		{"'''go file=ex/main.go\nvar x = 1\n'''", ""},
	} {
		t.Run(tt.block, func(t *testing.T) {
			tr := tree(t, map[string]string{
				"README.md":  page("# Title\n\n" + tt.block + "\n"),
				"ex/main.go": "package main\n\nvar x = 1\n",
			})
			var want []string
			if tt.want != "" {
				want = []string{"README.md:3: " + tt.want}
			}
			expect(t, CheckMarkdown(tr, []string{"test"}), want...)
		})
	}
}

func TestLinksReports(t *testing.T) {
	tr := tree(t, map[string]string{
		"README.md":      "[a](docs/design.md#part), [b](docs) and [c](https://example.com/x)\n[d](docs/gone.md), [e](gone) [f](#here)\n",
		"docs/design.md": "[up](../README.md) and [wrong](README.md)\n",
	})
	expect(t, CheckLinks(tr), "README.md:2: link to docs/gone.md", "README.md:2: link to gone", "docs/design.md:1: link to docs/README.md")
}
