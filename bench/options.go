package main

import (
	"io"
	"time"

	"github.com/qpoll/qpoll/bench/internal/load"
)

// options are what the user has chosen for a measurement.
type options struct {
	target       string // an address, or what stands for a target of our own
	nsid         int
	headerDigest bool
	dataDigest   bool
	noIOMMU      bool

	pattern string
	mix     int // percent reads
	block   size
	depth   int
	queues  int // per core
	extent  size

	time, warmup seconds
	cores        coreList
	adaptive     bool

	backend     string // of a target of our own
	capacity    size
	targetCores coreList

	jsonFile string
	profile  string

	connectTimeout time.Duration
}

var patterns = []string{"read", "write", "randread", "randwrite", "rw", "randrw"}

var backends = []string{"memory", "null"}

const intro = `Usage: bench [flags]          measure a namespace
       bench overhead [flags] measure what the driver costs for each I/O
                              (bench overhead -h)
       bench pci              list drives, and take them from the kernel and
                              give them back (bench pci -h)
       bench target [flags]   serve memory to NVMe/TCP hosts, or through
                              vfio-user (bench target -h)

With no flags, bench starts a target of its own on another core and reads
from that. Sizes are like 4096, 4k or 4KiB; times like 10, 10s or 200ms.`

func (o *options) flags() *flagSet {
	f := newFlagSet("bench", intro)
	o.targetFlags(f)

	f.heading("Load")
	f.value(choice{&o.pattern, patterns}, "rw", "`pattern`: read, write, randread, randwrite, or rw and randrw for both. Writing destroys what is there")
	f.value(number{&o.mix, 0, 100}, "mix", "`percent` of reads with rw and randrw")
	f.value(&o.block, "bs", "`size` of an I/O")
	f.value(number{&o.depth, 1, 65535}, "depth", "`n` I/Os outstanding in each queue; those beyond what the queue takes wait their turn, and the wait counts")
	f.value(number{&o.queues, 1, 1024}, "queues", "`n` queue pairs on each core")
	f.value(&o.cores, "cores", "`set` of cores to poll on, like 0,2-3 or 0xd; by default the first that is allowed")
	f.value(toggle{&o.adaptive}, "adaptive", "sleep when there is nothing to do, in place of polling on; the interrupts of a drive end the sleep")
	f.value(&o.time, "time", "`time` to measure for")
	f.value(&o.warmup, "warmup", "`time` before that, which does not count; by default a tenth of -time, at most 1s")

	f.heading("Results")
	f.value(text{&o.jsonFile}, "json", jsonUsage)
	f.value(text{&o.profile}, "cpuprofile", "write a CPU profile of the time measured to `file`, and print where the time went")
	o.ownFlags(f)

	// The letters of spdk_nvme_perf.
	for short, long := range map[string]string{
		"r": "target", "w": "rw", "M": "mix", "o": "bs", "q": "depth", "P": "queues", "c": "cores",
		"t": "time", "a": "warmup", "H": "hdgst", "I": "ddgst",
	} {
		f.alias(short, long)
	}
	return f
}

const jsonUsage = "write them to `file`, too; with -, JSON goes to standard output and all else to standard error"

// targetFlags defines the flags that say what to measure.
func (o *options) targetFlags(f *flagSet) {
	f.heading("What to measure")
	f.value(text{&o.target}, "target", "`address` of the controller, in one argument, like \"trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:NQN\" or \"transport=tcp,traddr=10.0.0.5,trsvcid=4420,nqn=NQN\"; pcie:0000:01:00.0, or trtype:pcie with traddr, for a drive that is bound to vfio-pci; vfio-user:DIR, or its socket, for a controller of another process; or of its own, embedded (NVMe/TCP), pcietest (PCIe) or pcietest:ideal (PCIe, moves no data)")
	f.value(number{&o.nsid, 1, 0x7ffffffe}, "nsid", "namespace `id`")
	f.value(toggle{&o.headerDigest}, "hdgst", "NVMe/TCP header digests")
	f.value(toggle{&o.dataDigest}, "ddgst", "NVMe/TCP data digests")
	f.value(toggle{&o.noIOMMU}, "no-iommu", "allow a drive without an IOMMU, which can then overwrite any memory of the machine")
	f.value(&o.extent, "range", "use only the first `size` bytes of the namespace; 0 is all of it")
}

// ownFlags defines the flags of targets of our own.
func (o *options) ownFlags(f *flagSet) {
	f.heading("Target of its own")
	f.value(choice{&o.backend, backends}, "backend", "`kind` of namespace: memory, or null, which keeps nothing")
	f.value(&o.capacity, "size", "`size` of its namespace")
	f.value(&o.targetCores, "target-cores", "`set` of cores to serve on; by default the first that -cores leaves")
}

// parseOptions reads the arguments of a measurement.
func parseOptions(args []string, stdout io.Writer) (*options, error) {
	o := &options{
		target: embedded, nsid: 1, pattern: "randread", mix: 50, block: 4096, depth: 128, queues: 1,
		time: seconds(10 * time.Second), backend: backends[0], capacity: 256 << 20,
		connectTimeout: 5 * time.Second,
	}
	f := o.flags()
	if err := f.parse(args, stdout); err != nil {
		return nil, err
	}
	given := f.given()
	if !given["warmup"] {
		o.warmup = min(o.time/10, seconds(time.Second))
	}
	return o, o.check(given)
}

// check refuses what does not go together.
func (o *options) check(given map[string]bool) error {
	switch {
	case o.time == 0:
		return usagef("-time 0 measures nothing: write -time 10s")
	case o.block == 0:
		return usagef("-bs 0 moves nothing: write -bs 4k")
	case o.block > 1<<30:
		return usagef("-bs %s is too large, 1 GiB is the most", &o.block)
	case given["mix"] && !o.mixed():
		return usagef("-mix goes with -rw rw or -rw randrw, not with -rw %s", o.pattern)
	}
	if !o.own() {
		for _, name := range []string{"backend", "size", "target-cores"} {
			if given[name] {
				return usagef("-%s is for targets of our own (embedded, pcietest): leave it out, or leave out -target", name)
			}
		}
		return nil
	}
	if o.software() {
		return o.checkSoftware(given)
	}
	if o.noIOMMU {
		return usagef("-no-iommu is for drives: leave it out, or write -target pcie:0000:01:00.0")
	}
	return o.checkCapacity()
}

// checkSoftware refuses what does not go with the software controller.
func (o *options) checkSoftware(given map[string]bool) error {
	switch {
	case o.headerDigest || o.dataDigest:
		return usagef("-hdgst and -ddgst are for NVMe/TCP: leave them out")
	case o.noIOMMU:
		return usagef("-no-iommu is for drives: leave it out, or write -target pcie:0000:01:00.0")
	case o.target == softwareIdeal && given["backend"]:
		return usagef("-target %s moves no data: leave out -backend, or write -target %s", softwareIdeal, software)
	case len(o.targetCores) > 1:
		return usagef("-target-cores: the software controller runs on one core, not on %d", len(o.targetCores))
	}
	return o.checkCapacity()
}

func (o *options) checkCapacity() error {
	if o.capacity < 1<<20 || o.capacity > 1<<40 {
		return usagef("-size %s is out of range, 1 MiB to 1 TiB are possible", &o.capacity)
	}
	return nil
}

func (o *options) mixed() bool { return o.pattern == "rw" || o.pattern == "randrw" }

// workload is what the options say about I/O.
func (o *options) workload() load.Workload {
	wl := load.Workload{
		Bytes: int(o.block), Jobs: o.depth, Range: uint64(o.extent), Seed: 1,
		Random: o.pattern[:2] == "ra", ReadPercent: 100,
	}
	switch o.pattern {
	case "write", "randwrite":
		wl.ReadPercent = 0
	case "rw", "randrw":
		wl.ReadPercent = o.mix
	}
	return wl
}
