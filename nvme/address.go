package nvme

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Address names a controller: the transport, where it is, and options, as
// parsed from the strings that users of nvme-cli and SPDK know.
type Address struct {
	Transport             string // trtype in lower case: "tcp", "pcie", "vfiouser"
	Family                string // adrfam in lower case: "ipv4", "ipv6", or empty
	Traddr                string // network address or name, PCI address, or path of a socket
	Service               string // trsvcid: port number or name
	SubNQN                string // subnqn, subsysnqn or nqn
	HostTraddr, HostIface string // source address and interface
	HostNQN, HostID       string
	Options               map[string]string // everything else, by its kernel name
}

// ErrAddress is the kind of all errors of ParseAddress.
var ErrAddress = errors.New("nvme: bad address")

// addressKeys maps each accepted key to its kernel name.
var addressKeys = map[string]string{
	"trtype": "transport", "transport": "transport",
	"adrfam": "adrfam", "traddr": "traddr", "trsvcid": "trsvcid",
	"subnqn": "nqn", "subsysnqn": "nqn", "nqn": "nqn",
	"host_traddr": "host_traddr", "hostaddr": "host_traddr", "host-traddr": "host_traddr",
	"host_iface": "host_iface", "host-iface": "host_iface",
	"hostnqn": "hostnqn", "hostid": "hostid",
	"hdgst": "hdr_digest", "hdr_digest": "hdr_digest", "hdr-digest": "hdr_digest",
	"ddgst": "data_digest", "data_digest": "data_digest", "data-digest": "data_digest",
	"nr_io_queues": "nr_io_queues", "nr-io-queues": "nr_io_queues",
	"queue_size": "queue_size", "queue-size": "queue_size",
	"keep_alive_tmo": "keep_alive_tmo", "keep-alive-tmo": "keep_alive_tmo",
	"reconnect_delay": "reconnect_delay", "reconnect-delay": "reconnect_delay",
	"ctrl_loss_tmo": "ctrl_loss_tmo", "ctrl-loss-tmo": "ctrl_loss_tmo",
	"fast_io_fail_tmo": "fast_io_fail_tmo", "fast-io-fail-tmo": "fast_io_fail_tmo",
	"tos": "tos", "priority": "priority", "ns": "ns",
}

const addressSeparators = " \t\n\r,"

// ParseAddress parses "trtype:tcp adrfam:ipv4 traddr:10.0.0.5 trsvcid:4420
// subnqn:NQN" as SPDK writes it, and "transport=tcp,traddr=10.0.0.5,
// trsvcid=4420,nqn=NQN" as nvme-cli and the kernel do, in any mixture: pairs
// are separated by white space or commas, keys and values by the first ':' or
// '='. Keys are matched in any case. Without trtype the transport is tcp if
// there is a trsvcid or subsystem NQN. The key ns, a namespace, is for programs
// that want one, as an option; Open refuses it. Errors are of kind ErrAddress.
func ParseAddress(s string) (Address, error) {
	var a Address
	seen := map[string]bool{}
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(addressSeparators, r) }) {
		if host, port, ok := hostPort(f); ok {
			return Address{}, fmt.Errorf("%w: %q is no key and value: write traddr:%s trsvcid:%s", ErrAddress, f, host, port)
		}
		i := strings.IndexAny(f, ":=")
		if i <= 0 {
			return Address{}, fmt.Errorf("%w: %q is not key:value or key=value", ErrAddress, f)
		}
		given, v := strings.ToLower(f[:i]), f[i+1:]
		key, ok := addressKeys[given]
		switch {
		case !ok:
			return Address{}, fmt.Errorf("%w: unknown key %q%s", ErrAddress, given, suggestKey(given))
		case seen[key]:
			return Address{}, fmt.Errorf("%w: %q given twice", ErrAddress, given)
		case v == "":
			return Address{}, fmt.Errorf("%w: %q has no value", ErrAddress, given)
		}
		seen[key] = true
		a.set(key, v)
	}
	return a, a.check()
}

// hostPort tells what is written as host:port, with a host that cannot be a key.
func hostPort(s string) (host, port string, ok bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.HasPrefix(host, "nqn.") || strings.Contains(host, "=") {
		return "", "", false
	}
	_, notIP := netip.ParseAddr(host)
	_, notPort := strconv.ParseUint(port, 10, 16)
	return host, port, notPort == nil && (notIP == nil || strings.Contains(host, "."))
}

func (a *Address) set(key, v string) {
	switch key {
	case "transport":
		a.Transport = strings.ToLower(v)
		if a.Transport == "vfio-user" {
			a.Transport = "vfiouser" // as SPDK writes it
		}
	case "adrfam":
		a.Family = strings.ToLower(v)
	case "traddr":
		a.Traddr = v
	case "trsvcid":
		a.Service = v
	case "nqn":
		a.SubNQN = v
	case "host_traddr":
		a.HostTraddr = v
	case "host_iface":
		a.HostIface = v
	case "hostnqn":
		a.HostNQN = v
	case "hostid":
		a.HostID = v
	default:
		if a.Options == nil {
			a.Options = map[string]string{}
		}
		a.Options[key] = v
	}
}

func (a *Address) check() error {
	if a.Transport == "" {
		if a.Service == "" && a.SubNQN == "" {
			return fmt.Errorf("%w: no trtype", ErrAddress)
		}
		a.Transport = "tcp"
	}
	if a.Traddr == "" {
		return fmt.Errorf("%w: no traddr", ErrAddress)
	}
	if a.Family != "" && !slices.Contains([]string{"ipv4", "ipv6", "ib", "fc", "loop"}, a.Family) {
		return fmt.Errorf("%w: unknown adrfam %q", ErrAddress, a.Family)
	}
	// Addresses also come from discovery logs.
	for _, v := range []string{a.Transport, a.Traddr, a.Service, a.SubNQN, a.HostTraddr, a.HostIface, a.HostNQN, a.HostID} {
		if strings.ContainsAny(v, addressSeparators) {
			return fmt.Errorf("%w: %q cannot stand in an address", ErrAddress, v)
		}
	}
	for _, n := range []string{a.SubNQN, a.HostNQN} {
		if n == "" {
			continue
		}
		if err := CheckNQN(n); err != nil {
			return err
		}
	}
	return nil
}

// CheckNQN tells whether s can be an NVMe Qualified Name: at most 223 bytes of
// printable text that begins with "nqn." (Base Specification 4.7).
func CheckNQN(s string) error {
	switch {
	case len(s) > 223:
		return fmt.Errorf("%w: NQN of %d bytes, 223 is the most", ErrAddress, len(s))
	case !strings.HasPrefix(s, "nqn."):
		return fmt.Errorf("%w: NQN %q does not begin with \"nqn.\"", ErrAddress, s)
	}
	for _, r := range s {
		if r < 0x21 || r == 0x7f || r == 0xfffd {
			return fmt.Errorf("%w: NQN %q has a character that is not printable", ErrAddress, s)
		}
	}
	return nil
}

// suggestKey returns a hint for a key that is nearly right: at most a third of
// its letters are wrong, and two.
func suggestKey(given string) string {
	best, dist := "", min(len(given)/3, 2)+1
	for k := range addressKeys {
		if d := editDistance(given, k); d < dist || d == dist && best != "" && k < best {
			best, dist = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

func editDistance(a, b string) int {
	if len(a) > 32 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// String writes the address in the form that ParseAddress reads.
func (a Address) String() string {
	var b strings.Builder
	add := func(k, v string) {
		if v != "" {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(k + ":" + v)
		}
	}
	add("trtype", a.Transport)
	add("adrfam", a.Family)
	add("traddr", a.Traddr)
	add("trsvcid", a.Service)
	add("subnqn", a.SubNQN)
	add("host_traddr", a.HostTraddr)
	add("host_iface", a.HostIface)
	add("hostnqn", a.HostNQN)
	add("hostid", a.HostID)
	keys := make([]string, 0, len(a.Options))
	for k := range a.Options {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		add(k, a.Options[k])
	}
	return b.String()
}
