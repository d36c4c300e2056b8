package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/qpoll/qpoll/pcie"
)

const pciIntro = `Usage: bench pci list              list the NVMe drives of this machine
       bench pci bind ADDRESS...   take drives from the kernel: bind them to
                                   vfio-pci, if nothing uses them
       bench pci unbind ADDRESS... give them back

ADDRESS is like 0000:01:00.0. Bind and unbind need root.`

// machine is what pcie.Host does.
type machine interface {
	Functions() ([]pcie.Function, error)
	Function(address string) (pcie.Function, error)
	Uses(address string) ([]pcie.Use, error)
	Bind(ctx context.Context, address string) error
	GiveBack(ctx context.Context, address string) error
}

// pci is the command about PCI functions.
func pci(ctx context.Context, args []string, stdout, _ io.Writer) error {
	return pciOn(ctx, pcie.Host{}, args, stdout)
}

func pciOn(ctx context.Context, m machine, args []string, out io.Writer) error {
	var asJSON bool
	f := newFlagSet("bench pci", pciIntro)
	f.heading("Results")
	f.value(toggle{&asJSON}, "json", "write them as JSON")
	words, err := f.words(args, out)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return usagef("bench pci list, bind or unbind (bench pci -h says more)")
	}
	command, addresses := words[0], words[1:]
	var list []drive
	switch command {
	case "list":
		if len(addresses) > 0 {
			return usagef("bench pci list lists all drives: leave out %q", addresses[0])
		}
		list, err = drives(m)
	case "bind", "unbind":
		list, err = rebind(ctx, m, command, addresses)
	default:
		return usagef("unknown command %q: it is bench pci list, bind or unbind", "pci "+command)
	}
	if asJSON && (err == nil || len(list) > 0) {
		b, jsonErr := json.MarshalIndent(list, "", "  ")
		if jsonErr == nil {
			_, jsonErr = fmt.Fprintf(out, "%s\n", b)
		}
		return errors.Join(err, jsonErr)
	}
	if command == "list" && err == nil {
		printDrives(out, list)
	}
	if command != "list" {
		for i := range list {
			list[i].printBound(out)
		}
	}
	return err
}

// words reads flags that may stand anywhere, and returns what else there is.
func (f *flagSet) words(args []string, out io.Writer) (words []string, err error) {
	for {
		switch err := f.Parse(args); {
		case err != nil:
			return nil, f.parse(args, out)
		case f.NArg() == 0:
			return words, nil
		}
		words, args = append(words, f.Arg(0)), f.Args()[1:]
	}
}

// drive is a PCI function as the command shows it.
type drive struct {
	Address  string   `json:"address"`
	ID       string   `json:"id"`     // vendor:device
	Driver   string   `json:"driver"` // empty: none
	Group    int      `json:"iommu_group"`
	NUMANode int      `json:"numa_node"`
	NoIOMMU  bool     `json:"no_iommu"`
	Cdev     string   `json:"cdev,omitempty"`
	Uses     []string `json:"uses"`    // what uses it
	Hinders  []string `json:"hinders"` // other functions that keep its group from being used
}

func newDrive(m machine, f *pcie.Function) (drive, error) {
	d := drive{
		Address: f.Address, ID: fmt.Sprintf("%04x:%04x", f.Vendor, f.Device), Driver: f.Driver, Group: f.IOMMUGroup,
		NUMANode: f.NUMANode, NoIOMMU: f.NoIOMMU || f.IOMMUGroup < 0, Cdev: f.Cdev, Uses: []string{}, Hinders: []string{},
	}
	for _, p := range f.Peers {
		if p.Hinders() {
			d.Hinders = append(d.Hinders, p.String())
		}
	}
	uses, err := m.Uses(f.Address)
	for _, u := range uses {
		d.Uses = append(d.Uses, u.String())
	}
	return d, err
}

// drives lists what there is. A drive that goes away meanwhile is left out.
func drives(m machine) ([]drive, error) {
	functions, err := m.Functions()
	if err != nil {
		return nil, err
	}
	list := []drive{}
	for i := range functions {
		d, err := newDrive(m, &functions[i])
		if errors.Is(err, pcie.ErrNoFunction) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// rebind binds functions or gives them back, up to the first that cannot be, and
// returns those that were.
func rebind(ctx context.Context, m machine, command string, addresses []string) (list []drive, err error) {
	if len(addresses) == 0 {
		return nil, usagef("bench pci %s ADDRESS: give an address like 0000:01:00.0 (bench pci list shows them)", command)
	}
	do := m.Bind
	if command == "unbind" {
		do = m.GiveBack
	}
	for _, a := range addresses {
		if err := do(ctx, a); err != nil {
			return list, bindError(err)
		}
		f, err := m.Function(a)
		if err != nil {
			return list, bindError(err)
		}
		d, err := newDrive(m, &f)
		if err != nil {
			return list, bindError(err)
		}
		list = append(list, d)
	}
	return list, nil
}

// bindError says what to do, where the error itself does not.
func bindError(err error) error {
	hint := ""
	switch {
	case errors.Is(err, pcie.ErrAddress), errors.Is(err, pcie.ErrNoFunction), errors.Is(err, pcie.ErrNotNVMe):
		hint = ": bench pci list shows the drives that there are"
	case errors.Is(err, pcie.ErrInUse):
		hint = ": end that first; it cannot be forced"
	case errors.Is(err, pcie.ErrNoIOMMU):
		hint = "; docs/real-drive.md has more, and what to do without"
	case errors.Is(err, pcie.ErrNoDriver):
		hint = ": load the kernel's driver (modprobe nvme)"
	}
	return errors.New(oneLine(err.Error()) + hint)
}

// printDrives prints the list for people.
func printDrives(out io.Writer, list []drive) {
	if len(list) == 0 {
		fmt.Fprintln(out, "there are no NVMe drives on the PCI buses of this machine")
		return
	}
	fmt.Fprintf(out, "%-14s %-10s %-10s %6s %5s  %s\n", "address", "id", "driver", "group", "node", "state")
	for i := range list {
		d := &list[i]
		fmt.Fprintf(out, "%-14s %-10s %-10s %6s %5s  %s\n", d.Address, d.ID, or(d.Driver, "none"), orNone(d.Group), orNone(d.NUMANode), d.state())
	}
}

// orNone writes a number is -1 if there is none.
func orNone(v int) string {
	if v < 0 {
		return "none"
	}
	return fmt.Sprint(v)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// state says what can be done with it.
func (d *drive) state() string {
	var parts []string
	switch {
	case len(d.Uses) > 0:
		parts = append(parts, "in use: "+strings.Join(d.Uses, "; "))
	case d.bound():
		parts = append(parts, "ready: -target pcie:"+d.Address)
	default:
		parts = append(parts, "free: bench pci bind "+d.Address)
	}
	if d.NoIOMMU {
		parts = append(parts, "no IOMMU")
	}
	if len(d.Hinders) > 0 {
		parts = append(parts, "shares its group with "+strings.Join(d.Hinders, ", "))
	}
	return strings.Join(parts, "; ")
}

func (d *drive) bound() bool { return strings.Contains(d.Driver, "vfio") }

// printBound says who has it now.
func (d *drive) printBound(out io.Writer) {
	fmt.Fprintf(out, "%s is bound to %s", d.Address, or(d.Driver, "no driver"))
	if d.bound() {
		fmt.Fprintf(out, ": -target pcie:%s", d.Address)
	}
	fmt.Fprintln(out)
}
