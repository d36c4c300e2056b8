//qpoll:hot

package pdu

// Params is what ICReq and ICResp settled for a connection. The zero value is
// a connection without digests and with dword alignment.
type Params struct {
	HDGST bool // header digests are on
	DDGST bool // data digests are on

	// HPDA and CPDA are the alignment of the data in PDUs to the host and to
	// the controller, in dwords, 0's based: 0 to MaxPDA. Higher values count
	// as MaxPDA.
	HPDA, CPDA uint8

	// MaxH2CData is the most data that one H2CData PDU may carry, in bytes.
	// It plays no part in a Layout. 0 means MinMaxH2CData.
	MaxH2CData uint32
}

// pda returns the alignment that holds for PDUs of type t.
func (p *Params) pda(t Type) uint8 {
	if t.Receiver() == Host {
		return min(p.HPDA, MaxPDA)
	}
	return min(p.CPDA, MaxPDA)
}

func (p *Params) maxH2CData() uint32 {
	if p.MaxH2CData == 0 {
		return MinMaxH2CData
	}
	return p.MaxH2CData
}

// hasDigests reports whether PDUs of type t can carry digests at all.
func (t Type) hasDigests() bool { return t >= TypeCapsuleCmd }

// DataOffset returns the PDO of a PDU with data: the header and, if hdgst, its
// digest, rounded up to the alignment of pda, which is in 0's based dwords.
func DataOffset(hlen int, hdgst bool, pda uint8) int {
	if hdgst {
		hlen += DigestSize
	}
	align := (int(pda) + 1) * 4
	return (hlen + align - 1) / align * align
}

// Layout is how PDUs of one type are laid out on a connection. It is made
// once per connection and type by Params.Layout.
type Layout struct {
	data    uint32 // first four header bytes of a PDU with data
	over    uint32 // PLEN of a PDU with data, less the data
	bare    uint32 // first four header bytes of a PDU without data
	bareLen uint32 // PLEN of a PDU without data

	// simple is set if nothing can lie between header and data, so that both
	// kinds of PDU are bareLen long up to the data.
	simple bool
}

// Layout returns the layout of PDUs of type t. ICReq, ICResp and TermReq carry
// no digests and no padding, whatever the parameters.
func (p Params) Layout(t Type) Layout {
	hlen := uint8(t.HeaderLen())
	var hdgst, ddgst Flags
	pda := uint8(0)
	if t.hasDigests() {
		pda = p.pda(t)
		if p.HDGST {
			hdgst = HDGSTF
		}
		if p.DDGST {
			ddgst = DDGSTF
		}
	}
	pdo := uint8(DataOffset(int(hlen), hdgst != 0, pda))
	l := Layout{
		bare:    head(t, hdgst, hlen, 0),
		bareLen: uint32(hlen) + uint32(hdgst)*DigestSize,
	}
	switch t {
	case TypeCapsuleCmd, TypeH2CData, TypeC2HData:
		l.data = head(t, hdgst|ddgst, hlen, pdo)
		l.over = uint32(pdo) + uint32(ddgst/DDGSTF)*DigestSize
	case TypeH2CTermReq, TypeC2HTermReq:
		// The offending header follows as data, but PDO is reserved.
		l.data = l.bare
		l.over = l.bareLen
	}
	l.simple = hdgst == 0 && l.PDO() <= int(l.bareLen)
	return l
}

// PDO returns the offset of the data in bytes: how long the header, its digest
// and the padding are together. It is 0 for a type that has no data.
func (l *Layout) PDO() int { return int(l.data >> 24) }

// HeaderLen returns the length of a PDU without data: of the header and its
// digest, in bytes.
func (l *Layout) HeaderLen() int { return int(l.bareLen) }

// HDGST reports whether the PDUs have a header digest.
func (l *Layout) HDGST() bool { return Flags(l.bare>>8)&HDGSTF != 0 }

// DDGST reports whether the PDUs with data have a data digest.
func (l *Layout) DDGST() bool { return Flags(l.data>>8)&DDGSTF != 0 }

// PLEN returns the length in bytes of a PDU with datal bytes of data.
func (l *Layout) PLEN(datal uint32) uint32 {
	if datal == 0 {
		return l.bareLen
	}
	return l.over + datal
}

// Finish completes the header that an Encode method wrote at the start of b,
// and returns the length of what goes before the data: the header, its digest
// if there is one, and, if data follows, zeroed padding up to PDO. b must be
// that long; MaxPDO bytes always are.
func (l *Layout) Finish(b []byte, data bool) int {
	if l.simple {
		return int(l.bareLen)
	}
	return l.finish(b, data)
}

func (l *Layout) finish(b []byte, data bool) int {
	n := int(l.bareLen)
	if l.HDGST() {
		hlen := n - DigestSize
		PutDigest(b[hlen:n], Digest(b[:hlen]))
	}
	if !data {
		return n
	}
	pdo := max(l.PDO(), n)
	clear(b[n:pdo])
	return pdo
}
