package nvme

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	const nqn = "nqn.2026-01.io.qpoll:disk"
	for s, want := range map[string]Address{
		"trtype:tcp adrfam:ipv4 traddr:10.0.0.5 trsvcid:4420 subnqn:" + nqn: {
			Transport: "tcp", Family: "ipv4", Traddr: "10.0.0.5", Service: "4420", SubNQN: nqn},
		"transport=tcp,traddr=10.0.0.5,trsvcid=4420,nqn=" + nqn: {
			Transport: "tcp", Traddr: "10.0.0.5", Service: "4420", SubNQN: nqn},
		"TRTYPE:TCP\tADRFAM:IPv6,traddr:fe80::1%eth0\r\nsubsysnqn=" + nqn: {
			Transport: "tcp", Family: "ipv6", Traddr: "fe80::1%eth0", SubNQN: nqn},
		"traddr:[::1] trsvcid:4420":                {Transport: "tcp", Traddr: "[::1]", Service: "4420"},
		"  trtype=PCIe   traddr=0000:01:00.0 ns=3": {Transport: "pcie", Traddr: "0000:01:00.0", Options: map[string]string{"ns": "3"}},
		"trtype:VFIOUSER traddr:/run/spdk/disk0":   {Transport: "vfiouser", Traddr: "/run/spdk/disk0"},
		"trtype:vfio-user traddr:/run/spdk/disk0":  {Transport: "vfiouser", Traddr: "/run/spdk/disk0"},
		"traddr=h nqn=" + nqn + " hdgst=1 data-digest=true host_iface=eth0 host-traddr=10.0.0.1 hostnqn=nqn.x:1 hostid=z": {
			Transport: "tcp", Traddr: "h", SubNQN: nqn, HostTraddr: "10.0.0.1", HostIface: "eth0", HostNQN: "nqn.x:1", HostID: "z",
			Options: map[string]string{"hdr_digest": "1", "data_digest": "true"}},
	} {
		got, err := ParseAddress(s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", s, got, err)
			continue
		}
		again, err := ParseAddress(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q again: %+v, %v", got, again, err)
		}
	}
	for s, hint := range map[string]string{
		"":                             "no trtype",
		"trtype:tcp":                   "no traddr",
		"traddr:1.2.3.4":               "no trtype",
		"trtype:tcp traddr":            "not key:value",
		"trtype:tcp :x":                "not key:value",
		"trtype:tcp traddr:":           "no value",
		"trtype:tcp traddr:a traddr=b": "given twice",
		"trtype:tcp traddr:a nqn:nqn.x:1 subnqn:nqn.x:2":          "given twice",
		"trtype:tcp tradr:a":                                      `did you mean "traddr"`,
		"trtype:tcp traddr:a quux:b":                              `unknown key "quux"`,
		"trtype:tcp traddr:a ts:b":                                "unknown key \"ts\"\n",
		"trtype:tcp traddr:a foo:b":                               "unknown key \"foo\"\n",
		"trtype:tcp traddr:a tox:b":                               `did you mean "tos"`,
		"trtype:tcp traddr:a keepalive_tmo:b":                     `did you mean "keep_alive_tmo"`,
		"127.0.0.1:4420":                                          "write traddr:127.0.0.1 trsvcid:4420",
		"[::1]:4420 nqn:nqn.x":                                    "write traddr:::1 trsvcid:4420",
		"trtype:tcp nqn.x:1":                                      `unknown key "nqn.x"`,
		"trtype:tcp storage.example:4420":                         "write traddr:storage.example trsvcid:4420",
		"trtype:tcp traddr:a adrfam:ipv5":                         "unknown adrfam",
		"trtype:tcp traddr:a nqn:disk":                            `does not begin with "nqn."`,
		"trtype:tcp traddr:a nqn:nqn." + strings.Repeat("x", 220): "223 is the most",
		"trtype:tcp traddr:a hostnqn:nqn.\x01":                    "not printable",
		"trtype:tcp traddr:a nqn:nqn.\xff":                        "not printable",
	} {
		if a, err := ParseAddress(s); !errors.Is(err, ErrAddress) || !strings.Contains(err.Error()+"\n", hint) {
			t.Errorf("%q: %+v, %v", s, a, err)
		}
	}
}

// What a discovery log says about an address becomes an address, or an error:
// it cannot smuggle anything else into the string.
func TestDiscoveredAddress(t *testing.T) {
	entry := func(traddr, service, nqn string) *DiscoveryEntry {
		e := &DiscoveryEntry{TRTYPE: TRTypeTCP, ADRFAM: ADRFamIPv4, SUBTYPE: SubTypeNVM}
		copy(e.TRADDR[:], traddr)
		copy(e.TRSVCID[:], service)
		copy(e.SUBNQN[:], nqn)
		return e
	}
	const nqn = "nqn.2026-01.io.qpoll:disk"
	a, err := entry("10.0.0.5", "4420", nqn).Address()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseAddress(a.String())
	if err != nil || !reflect.DeepEqual(a, again) || a.Transport != "tcp" || a.Family != "ipv4" || a.Traddr != "10.0.0.5" {
		t.Fatalf("%+v, %+v, %v", a, again, err)
	}
	for _, e := range []*DiscoveryEntry{
		entry("", "4420", nqn),
		entry("10.0.0.5 hostnqn:nqn.evil:1", "4420", nqn),
		entry("10.0.0.5,hostnqn:nqn.evil:1", "4420", nqn),
		entry("10.0.0.5", "4420 hostid:1", nqn),
		entry("10.0.0.5", "4420\x00", "disk"),
		entry("10.0.0.5", "4420", nqn+",hostnqn=nqn.evil:1"),
	} {
		if a, err := e.Address(); err == nil {
			t.Errorf("%q", a)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("trtype:tcp adrfam:ipv4 traddr:10.0.0.5 trsvcid:4420 subnqn:nqn.2014-08.org.example:disk")
	f.Add("transport=pcie,traddr=0000:01:00.0,queue-size=12,tos=3")
	f.Add("traddr=::1\nTRSVCID=x HOST-IFACE=\xff")
	f.Add("trtype:\u212a traddr:\u00a0 adrfam:IPV4")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			if !errors.Is(err, ErrAddress) {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseAddress(a.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", s, a, err)
		}
		if !maps.Equal(a.Options, again.Options) {
			t.Fatalf("%q became %q", s, a)
		}
		a.Options, again.Options = nil, nil
		if !reflect.DeepEqual(a, again) {
			t.Fatalf("%+v became %+v", a, again)
		}
	})
}
