package nvme

import "encoding/binary"

// Limits of an ANADecoder that is given none: any number of groups that the
// header can tell, and 4 MiB of namespace identifiers.
const (
	maxANAGroups     = 0xffff
	maxANANamespaces = 1 << 20
)

// ANADecoder reads an ANA log page that arrives in pieces, as it does when it
// is larger than one transfer. Write takes the pieces in order; the page says
// itself how long it is, so read on until Complete. The decoder refuses a page
// that goes beyond its limits as soon as that shows, and so bounds how much is
// read. It is not safe for concurrent use.
type ANADecoder struct {
	maxGroups     int
	maxNamespaces int

	log      ANALog
	groups   int // told by the header
	nsids    int // namespace identifiers in all groups
	missing  int // identifiers that the last group still lacks
	headed   bool
	seen     map[uint32]bool // group identifiers
	partial  [anaGroupSize]byte
	nPartial int
	err      error
}

// NewANADecoder returns a decoder that takes at most so many groups and
// namespaces: NANAGRPID and MaxNamespaces of Identify Controller. Zero, and
// anything above 65535 groups or 1048576 namespaces, means those.
func NewANADecoder(groups, namespaces uint32) *ANADecoder {
	d := &ANADecoder{maxGroups: maxANAGroups, maxNamespaces: maxANANamespaces, seen: map[uint32]bool{}}
	if groups != 0 {
		d.maxGroups = int(min(groups, maxANAGroups))
	}
	if namespaces != 0 {
		d.maxNamespaces = int(min(namespaces, maxANANamespaces))
	}
	return d
}

// Write takes the next piece. After the page is complete it ignores what is
// left. An error is final.
func (d *ANADecoder) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && d.err == nil && !d.Complete() {
		b = b[d.fill(b):]
	}
	if d.err != nil {
		return 0, d.err
	}
	return n, nil
}

// fill takes bytes towards the next unit and decodes that when it is whole.
func (d *ANADecoder) fill(b []byte) int {
	unit := d.unit()
	n := copy(d.partial[d.nPartial:unit], b)
	d.nPartial += n
	if d.nPartial == unit {
		d.nPartial = 0
		d.decode()
	}
	return n
}

// unit returns the size of what comes next: the header, a group's header or a
// namespace identifier.
func (d *ANADecoder) unit() int {
	switch {
	case !d.headed:
		return anaHeaderSize
	case d.missing == 0:
		return anaGroupSize
	}
	return 4
}

func (d *ANADecoder) decode() {
	switch {
	case !d.headed:
		d.header()
	case d.missing == 0:
		d.group()
	default:
		d.namespace()
	}
}

func (d *ANADecoder) header() {
	d.headed = true
	d.log.ChangeCount = binary.LittleEndian.Uint64(d.partial[:])
	d.groups = int(binary.LittleEndian.Uint16(d.partial[8:]))
	if d.groups > d.maxGroups {
		d.err = malformed(anaWhat, "%d groups, at most %d", d.groups, d.maxGroups)
	}
}

func (d *ANADecoder) group() {
	g := ANAGroup{
		ID:          binary.LittleEndian.Uint32(d.partial[:]),
		ChangeCount: binary.LittleEndian.Uint64(d.partial[8:]),
		State:       ANAState(d.partial[16] & 0xf),
	}
	n := binary.LittleEndian.Uint32(d.partial[4:])
	switch {
	case g.ID == 0 || d.seen[g.ID]:
		d.err = malformed(anaWhat, "group %d is zero or told twice", g.ID)
	case !g.State.Valid():
		d.err = malformed(anaWhat, "group %d is in %v", g.ID, g.State)
	case uint64(n) > uint64(d.maxNamespaces-d.nsids):
		d.err = malformed(anaWhat, "group %d has %d namespaces after %d, at most %d", g.ID, n, d.nsids, d.maxNamespaces)
	default:
		d.seen[g.ID] = true
		d.nsids += int(n)
		d.missing = int(n)
		d.log.Groups = append(d.log.Groups, g)
	}
}

func (d *ANADecoder) namespace() {
	g := &d.log.Groups[len(d.log.Groups)-1]
	id := binary.LittleEndian.Uint32(d.partial[:])
	if id == 0 || id == NSIDAll {
		d.err = malformed(anaWhat, "group %d has namespace 0x%x", g.ID, id)
		return
	}
	g.NSIDs = append(g.NSIDs, id)
	d.missing--
}

// ChangeCount returns the change count of the header, and false before the
// header has arrived. A page that is read in pieces is consistent when the
// header, read again at the end, still tells the same count.
func (d *ANADecoder) ChangeCount() (uint64, bool) { return d.log.ChangeCount, d.headed }

// Complete tells whether the whole page has arrived.
func (d *ANADecoder) Complete() bool {
	return d.headed && d.missing == 0 && len(d.log.Groups) == d.groups
}

// Log returns the page, or a DecodeError when it is malformed or not complete.
func (d *ANADecoder) Log() (*ANALog, error) {
	switch {
	case d.err != nil:
		return nil, d.err
	case !d.headed:
		return nil, malformed(anaWhat, "no header")
	case !d.Complete():
		return nil, malformed(anaWhat, "cut off in group %d of %d", len(d.log.Groups), d.groups)
	}
	return &d.log, nil
}
