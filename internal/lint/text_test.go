package lint

import (
	"strings"
	"testing"
)

func TestTextReports(t *testing.T) {
	lines := []string{
		"TO" + "DO(me): finish", "// FIX" + "ME", "XX" + "X", "HA" + "CK", "not " + "implemented yet", "Not " + "Implemented",
		"/wo" + "rk/main", `"/ro` + `ot/go"`, "cd /ro" + "ot", "see ../" + "shared/style.md", "/tmp/" + "wt/ci", "=/ho" + "me/me", "/fa" + "rm/x",
	}
	bad := len(lines)
	lines = append(lines, "mktemp /tmp/x.XXXXXX", "TODOS", "hacked", "/dev/vfio/1", "/sys/kernel/config/nvmet", "a/work/b", "$root/x", "https://example.com/home/x",
		"/tmp/cpu.prof", "/workers", "rootfs/root", "${dir}/work")
	tr := tree(t, map[string]string{
		"docs/a.md":           strings.Join(lines, "\n") + "\n",
		"internal/guest/a.md": "HOME=/ro" + "ot\n",
		"go.sum":              "example.com v1 h1:XX" + "X/\n",
	})
	problems := CheckText(tr)
	seen := make(map[int]bool)
	for _, p := range problems {
		if p.Path != "docs/a.md" || p.Line > bad {
			t.Errorf("unexpected: %s: %q", p, lines[p.Line-1])
		}
		seen[p.Line] = true
	}
	for n := 1; n <= bad; n++ {
		if !seen[n] {
			t.Errorf("not reported: %q", lines[n-1])
		}
	}
}

func TestSizeReports(t *testing.T) {
	tr := tree(t, map[string]string{
		"docs/long.md": strings.Repeat("x", MaxFileSize+1),
		"docs/fits.md": strings.Repeat("x", MaxFileSize),
		"go.sum":       strings.Repeat("x", MaxFileSize+1),
	})
	expect(t, CheckSize(tr), "docs/long.md: 40961 bytes")
}
