package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/qpoll/qpoll/internal/lint"
)

// pageCommand returns the command that a page marks as run=gate. There must be
// exactly one.
func pageCommand(page []byte, gate string) (string, error) {
	var found []string
	for _, b := range lint.Blocks(page) {
		if v, _ := b.Tag("run"); v == gate {
			found = append(found, strings.TrimSpace(b.Body))
		}
	}
	if len(found) != 1 || found[0] == "" {
		return "", fmt.Errorf("%d blocks marked run=%s, want one that is not empty", len(found), gate)
	}
	return found[0], nil
}

func printPageCommand(_ context.Context, args []string) error {
	if len(args) != 2 || args[0] == "" {
		return errors.New("usage: ci page-command GATE FILE")
	}
	page, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	text, err := pageCommand(page, args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	fmt.Println(text)
	return nil
}

// script is a block of a page that is marked run, without a gate.
type script struct {
	File string
	Line int
	Body string
}

func pageScripts(file string, page []byte) []script {
	var scripts []script
	for _, b := range lint.Blocks(page) {
		if gate, run := b.Tag("run"); run && gate == "" {
			scripts = append(scripts, script{file, b.Line, b.Body})
		}
	}
	return scripts
}

// runPages runs, in the current directory, every block of the pages that is
// marked run.
func runPages(ctx context.Context, files []string) error {
	n := 0
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, s := range pageScripts(file, page) {
			fmt.Printf("# %s:%d\n%s", s.File, s.Line, s.Body)
			if err := command(ctx, ".", "bash", "-euo", "pipefail", "-c", s.Body).Run(); err != nil {
				return fmt.Errorf("%s:%d: %w", s.File, s.Line, err)
			}
			n++
		}
	}
	if n == 0 {
		return errors.New("no page has a command to run")
	}
	fmt.Printf("pages: %d passed, 0 failed\n", n)
	return nil
}
