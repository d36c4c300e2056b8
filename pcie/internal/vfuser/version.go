package vfuser

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// The version of the protocol.
const (
	Major = 0
	Minor = 1
)

// What holds for a peer that does not say otherwise, and what it may say.
const (
	DefaultMaxFDs  = 1
	DefaultMaxData = 1 << 20
	DefaultPage    = 4096

	limitFDs     = 1024
	limitVersion = 64 << 10
)

// Capabilities are what one side can take, part of Version as JSON text. Zero
// fields are left out.
type Capabilities struct {
	MaxFDs      uint32 // descriptors in one message ("max_msg_fds")
	MaxData     uint64 // data of one access in bytes ("max_data_xfer_size")
	MaxDMAMaps  uint32 // mappings at a time ("max_dma_maps")
	PageSizes   uint64 // page sizes of mappings, as a bitmap ("pgsizes")
	TwinSocket  bool   // commands of the device may have a socket of their own ("twin_socket")
	WriteMulti  bool   // CmdRegionWriteMulti is known ("write_multiple")
	MigratePage uint64 // page size of dirty bitmaps ("migration")
}

// WithDefaults fills in what was left out.
func (c Capabilities) WithDefaults() Capabilities {
	if c.MaxFDs == 0 {
		c.MaxFDs = DefaultMaxFDs
	}
	if c.MaxData == 0 {
		c.MaxData = DefaultMaxData
	}
	return c
}

// Version begins a connection (struct vfio_user_version): the client proposes,
// the server answers with what holds.
type Version struct {
	Major, Minor uint16
	Capabilities Capabilities
}

type jsonVersion struct {
	Capabilities *jsonCapabilities `json:"capabilities,omitempty"`
}

type jsonCapabilities struct {
	MaxFDs     *int64       `json:"max_msg_fds,omitempty"`
	MaxData    *int64       `json:"max_data_xfer_size,omitempty"`
	MaxDMAMaps *int64       `json:"max_dma_maps,omitempty"`
	PageSizes  *int64       `json:"pgsizes,omitempty"`
	TwinSocket *jsonTwin    `json:"twin_socket,omitempty"`
	WriteMulti *bool        `json:"write_multiple,omitempty"`
	Migration  *jsonMigrate `json:"migration,omitempty"`
}

type jsonTwin struct {
	Supported bool `json:"supported"`
}

type jsonMigrate struct {
	PageSize int64 `json:"pgsize"`
}

// Append appends the payload to b.
func (v Version) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, v.Major)
	b = binary.LittleEndian.AppendUint16(b, v.Minor)
	c := v.Capabilities
	if c == (Capabilities{}) {
		return b
	}
	j := jsonCapabilities{
		MaxFDs: number(uint64(c.MaxFDs)), MaxData: number(c.MaxData),
		MaxDMAMaps: number(uint64(c.MaxDMAMaps)), PageSizes: number(c.PageSizes),
	}
	if c.TwinSocket {
		j.TwinSocket = &jsonTwin{Supported: true}
	}
	if c.WriteMulti {
		j.WriteMulti = &c.WriteMulti
	}
	if c.MigratePage != 0 {
		j.Migration = &jsonMigrate{PageSize: int64(c.MigratePage)}
	}
	// Numbers and booleans always marshal.
	text, _ := json.Marshal(jsonVersion{Capabilities: &j})
	return append(append(b, text...), 0)
}

func number(v uint64) *int64 {
	if v == 0 {
		return nil
	}
	n := int64(min(v, 1<<62))
	return &n
}

// ParseVersion reads the payload. Unknown capabilities are ignored; those with
// values that make no sense are an error.
func ParseVersion(b []byte) (Version, error) {
	const what = "version"
	if len(b) < 4 {
		return Version{}, short(what, len(b), 4)
	}
	v := Version{Major: binary.LittleEndian.Uint16(b), Minor: binary.LittleEndian.Uint16(b[2:])}
	text := b[4:]
	if len(text) == 0 {
		return v, nil
	}
	if len(text) > limitVersion {
		return Version{}, malformed(what, "%d bytes of capabilities", len(text))
	}
	end := bytes.IndexByte(text, 0)
	if end < 0 {
		return Version{}, malformed(what, "the capabilities do not end in a zero byte")
	}
	if end == 0 {
		return v, nil
	}
	var j jsonVersion
	if err := json.Unmarshal(text[:end], &j); err != nil {
		return Version{}, malformed(what, "capabilities: %v", err)
	}
	if j.Capabilities == nil {
		return v, nil
	}
	return v, j.Capabilities.decode(&v.Capabilities)
}

func (j *jsonCapabilities) decode(c *Capabilities) error {
	for _, f := range []struct {
		name  string
		from  *int64
		limit int64
		set   func(int64)
	}{
		{"max_msg_fds", j.MaxFDs, limitFDs, func(v int64) { c.MaxFDs = uint32(v) }},
		{"max_data_xfer_size", j.MaxData, 1 << 40, func(v int64) { c.MaxData = uint64(v) }},
		{"max_dma_maps", j.MaxDMAMaps, 1<<32 - 1, func(v int64) { c.MaxDMAMaps = uint32(v) }},
		{"pgsizes", j.PageSizes, 1<<63 - 1, func(v int64) { c.PageSizes = uint64(v) }},
	} {
		if f.from == nil {
			continue
		}
		if *f.from < 0 || *f.from > f.limit {
			return malformed("version", "%s of %d", f.name, *f.from)
		}
		f.set(*f.from)
	}
	c.TwinSocket = j.TwinSocket != nil && j.TwinSocket.Supported
	c.WriteMulti = j.WriteMulti != nil && *j.WriteMulti
	if j.Migration != nil && j.Migration.PageSize > 0 {
		c.MigratePage = uint64(j.Migration.PageSize)
	}
	return nil
}
