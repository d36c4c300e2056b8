package assets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// tools are the packages to install: the emulators, and what unpacks the rest.
// qemu-user-static is for running arm64 test binaries.
var tools = []string{"qemu-system-x86", "qemu-user-static", "kmod", "xz-utils", "zstd", "gzip"}

// kernels are the meta packages to look at, in order. The cloud flavour is a
// third of the size and has all that guests need.
var kernels = []string{
	"linux-image-6.12-cloud-amd64", // Debian 12
	"linux-image-cloud-amd64",      // Debian 13 and later
	"linux-image-6.12-amd64",
	"linux-image-amd64",
}

// The oldest kernel that will do.
const minMajor, minMinor = 6, 12

// run runs a command and returns its standard output. The error has the end of
// its standard error.
func (p *preparer) run(stdin io.Reader, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(p.ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdin = stdin
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		msg := errOut.Bytes()
		if len(msg) > 2000 {
			msg = msg[len(msg)-2000:]
		}
		words := argv[:min(len(argv), 6)]
		return nil, fmt.Errorf("guest assets: %s: %w: %s", strings.Join(words, " "), err, bytes.TrimSpace(msg))
	}
	return out.Bytes(), nil
}

// show runs a command with its output going to the log.
func (p *preparer) show(argv ...string) error {
	fmt.Fprintln(p.log, "+", strings.Join(argv, " "))
	out, err := p.run(nil, argv...)
	_, _ = p.log.Write(out)
	return err
}

func (p *preparer) installPackages() error {
	missing, err := p.missing()
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := p.update(); err != nil {
		return err
	}
	return p.show(append([]string{"apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, missing...)...)
}

// missing returns the packages of tools that are not installed.
func (p *preparer) missing() ([]string, error) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return nil, fmt.Errorf("guest assets: only Debian and its kin are supported: %w", err)
	}
	var missing []string
	for _, t := range tools {
		out, err := p.run(nil, "dpkg-query", "-W", "-f", "${db:Status-Status}", t)
		var exit *exec.ExitError
		switch {
		case err != nil && !errors.As(err, &exit):
			return nil, err
		case err != nil || string(out) != "installed":
			missing = append(missing, t)
		}
	}
	return missing, nil
}

// update refreshes apt's package lists, once. A source that does not answer is
// reported but is no error: what comes after fails if it was needed.
func (p *preparer) update() error {
	if p.updated {
		return nil
	}
	p.updated = true
	if err := p.show("apt-get", "update", "-q"); err != nil {
		if p.ctx.Err() != nil {
			return err
		}
		fmt.Fprintln(p.log, "warning:", err)
	}
	return nil
}

// kernelPackage returns the name of the package with the kernel itself.
func (p *preparer) kernelPackage() (string, error) {
	var tried []string
	for _, meta := range kernels {
		out, err := p.run(nil, "apt-cache", "depends", meta)
		if err != nil {
			tried = append(tried, meta+": not offered")
			continue
		}
		pkg, ok := kernelDependency(string(out))
		if ok {
			return pkg, nil
		}
		tried = append(tried, fmt.Sprintf("%s: %q is too old", meta, pkg))
	}
	return "", fmt.Errorf("guest assets: apt offers no kernel %d.%d or later (%s)", minMajor, minMinor, strings.Join(tried, "; "))
}

var kernelLine = regexp.MustCompile(`(?m)^\s*Depends: (linux-image-(\d+)\.(\d+)\S*)$`)

// kernelDependency finds the kernel in the output of apt-cache depends, and
// tells whether it is new enough.
func kernelDependency(out string) (pkg string, ok bool) {
	m := kernelLine.FindStringSubmatch(out)
	if m == nil {
		return "", false
	}
	major, err1 := strconv.Atoi(m[2])
	minor, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil {
		return m[1], false
	}
	return m[1], major > minMajor || (major == minMajor && minor >= minMinor)
}

// unpack downloads packages into debs and unpacks them below root. It returns
// the version of the first.
func (p *preparer) unpack(debs, root string, pkgs ...string) (version string, err error) {
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return "", err
	}
	// apt-get downloads into its working directory.
	argv := append([]string{"env", "-C", debs, "apt-get", "download", "-q", "-o", "APT::Sandbox::User=root"}, pkgs...)
	if err := p.show(argv...); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return "", err
	}
	if len(files) != len(pkgs) {
		return "", fmt.Errorf("guest assets: apt-get download gave %q, want %q", files, pkgs)
	}
	for _, f := range files {
		if _, err := p.run(nil, "dpkg-deb", "-x", f, root); err != nil {
			return "", err
		}
		if strings.HasPrefix(filepath.Base(f), pkgs[0]+"_") {
			out, err := p.run(nil, "dpkg-deb", "-f", f, "Version")
			if err != nil {
				return "", err
			}
			version = strings.TrimSpace(string(out))
		}
	}
	return version, nil
}
