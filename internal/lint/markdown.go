package lint

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Block is a fenced code block of a Markdown page. Its info string says what
// keeps it true:
//
//	sh run         the docs gate runs it, as a bash script at the module's root
//	sh run=NAME    the gate NAME runs it
//	sh manual      nothing does: it needs hardware, or a host of the reader's
//	go file=PATH   it stands word for word in the file PATH, which is built or tested
//	text, ...      any other language: nothing to keep true
type Block struct {
	Line int      // of the opening fence, from 1
	Lang string   // first word of the info string
	Tags []string // the other words
	Body string
}

// Tag returns the value of the tag NAME=VALUE, and whether NAME is there, with
// or without a value.
func (b Block) Tag(name string) (value string, ok bool) {
	for _, tag := range b.Tags {
		if n, v, _ := strings.Cut(tag, "="); n == name {
			return v, true
		}
	}
	return "", false
}

// Blocks returns the fenced blocks of a page. A fence that is not closed ends
// with the page.
func Blocks(page []byte) []Block {
	var blocks []Block
	var open string // the fence of the block that is open
	n := 0
	for raw := range bytes.Lines(page) {
		n++
		line := strings.TrimRight(string(raw), "\r\n")
		fence, info := splitFence(line)
		switch {
		case open == "" && fence != "":
			open = fence
			b := Block{Line: n}
			if words := strings.Fields(info); len(words) > 0 {
				b.Lang, b.Tags = words[0], words[1:]
			}
			blocks = append(blocks, b)
		case open != "" && strings.HasPrefix(fence, open) && info == "":
			open = ""
		case open != "":
			blocks[len(blocks)-1].Body += line + "\n"
		}
	}
	return blocks
}

// splitFence splits a line that opens or closes a block into the fence and
// the info string; fence is empty for any other line.
func splitFence(line string) (fence, info string) {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > 3 {
		return "", ""
	}
	for _, c := range []string{"`", "~"} {
		info = strings.TrimLeft(s, c)
		if fence = s[:len(s)-len(info)]; len(fence) >= 3 {
			return fence, strings.TrimSpace(info)
		}
	}
	return "", ""
}

// shells are the languages of blocks that a reader would run.
var shells = []string{"sh", "bash", "shell", "console"}

// CheckMarkdown reports code blocks that do not say what keeps them true, and
// Go blocks that differ from the file they name. gates are the names that
// run=NAME may use.
func CheckMarkdown(t *Tree, gates []string) []Problem {
	var ps []Problem
	for _, f := range t.Files {
		if !strings.HasSuffix(f.Path, ".md") {
			continue
		}
		for _, b := range Blocks(f.Src) {
			if why := checkBlock(t, b, gates); why != "" {
				ps = append(ps, Problem{f.Path, b.Line, why})
			}
		}
	}
	return ps
}

func checkBlock(t *Tree, b Block, gates []string) string {
	gate, run := b.Tag("run")
	_, manual := b.Tag("manual")
	file, hasFile := b.Tag("file")
	switch {
	case b.Lang == "":
		return "a code block without a language: call it text if nothing can check it"
	case slices.Contains(shells, b.Lang) && run == manual:
		return "a shell block says either run, run=GATE or manual"
	case gate != "" && !slices.Contains(gates, gate):
		return fmt.Sprintf("no gate %q runs commands of a page", gate)
	case run && strings.TrimSpace(b.Body) == "":
		return "an empty block cannot be run"
	case b.Lang == "go" && !hasFile:
		return "a Go block says file=PATH, where it stands word for word"
	case hasFile && t.File(file) == nil:
		return fmt.Sprintf("no file %q", file)
	case hasFile && (strings.TrimSpace(b.Body) == "" || !bytes.Contains(t.File(file).Src, []byte(b.Body))):
		return fmt.Sprintf("differs from %s", file)
	}
	return ""
}

var mdLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// CheckLinks reports links of pages to files that are not in the tree. Links
// to other hosts are not followed.
func CheckLinks(t *Tree) []Problem {
	var ps []Problem
	for _, f := range t.Files {
		if !strings.HasSuffix(f.Path, ".md") {
			continue
		}
		n := 0
		for line := range bytes.Lines(f.Src) {
			n++
			for _, m := range mdLink.FindAllSubmatch(line, -1) {
				to, _, _ := strings.Cut(string(m[1]), "#")
				if to == "" || strings.Contains(to, ":") {
					continue
				}
				if to = path.Join(f.Dir(), to); t.File(to) == nil && !t.isDir(to) {
					ps = append(ps, Problem{f.Path, n, fmt.Sprintf("link to %s, which is not there", to)})
				}
			}
		}
	}
	return ps
}
