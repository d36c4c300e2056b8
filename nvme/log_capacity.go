package nvme

import "encoding/binary"

// MediaUnitStatusLog is the Media Unit Status log page (Base Specification 2.1,
// figures "Media Unit Status Log Page" and "Media Unit Status Descriptor").
type MediaUnitStatusLog struct {
	Channels uint16 // channels of the controller; 0 not told
	Selected uint16 // selected capacity configuration; 0 none
	Units    []MediaUnitStatus
}

// MediaUnitStatus is a Media Unit Status Descriptor.
type MediaUnitStatus struct {
	MUID           uint16 // media unit
	DID            uint16 // domain; 0 not told
	ENDGID         uint16 // endurance group; 0 none
	NVMSETID       uint16 // NVM set; 0 none
	CapacityAdjust uint16 // capacity adjustment factor; 0 not told
	AvailableSpare uint8  // percent
	PercentageUsed uint8  // percent; 255 for more than 254
	Channels       []uint16
}

const mediaUnitHeaderSize = 14

// UnmarshalBinary reads the log page. Counts and offsets that lead outside of b
// are a DecodeError.
func (l *MediaUnitStatusLog) UnmarshalBinary(b []byte) error {
	c := cursor{what: "media unit status log", b: b}
	n := c.u16()
	log := MediaUnitStatusLog{Channels: c.u16(), Selected: c.u16()}
	c.skip(10)
	for range c.count(uint64(n), mediaUnitHeaderSize) {
		log.Units = append(log.Units, c.mediaUnit())
		if c.err != nil {
			return c.err
		}
	}
	if c.err == nil {
		*l = log
	}
	return c.err
}

func (c *cursor) mediaUnit() MediaUnitStatus {
	u := MediaUnitStatus{
		MUID: c.u16(), DID: c.u16(), ENDGID: c.u16(), NVMSETID: c.u16(),
		CapacityAdjust: c.u16(), AvailableSpare: c.u8(), PercentageUsed: c.u8(),
	}
	channels, offset := int(c.u8()), int(c.u8())
	if c.err == nil && offset < mediaUnitHeaderSize {
		c.err = malformed(c.what, "media unit %d: channels at offset %d", u.MUID, offset)
	}
	c.skip(offset - mediaUnitHeaderSize)
	u.Channels = c.u16s(channels)
	return u
}

// AppendBinary appends the bytes of the log page.
func (l *MediaUnitStatusLog) AppendBinary(b []byte) ([]byte, error) {
	if len(l.Units) > 0xffff {
		return nil, outOfRange("media unit status log", "%d units", len(l.Units))
	}
	b = appendU16(b, uint16(len(l.Units)), l.Channels, l.Selected)
	b = append(b, make([]byte, 10)...)
	for _, u := range l.Units {
		if len(u.Channels) > 0xff {
			return nil, outOfRange("media unit status log", "%d channels", len(u.Channels))
		}
		b = appendU16(b, u.MUID, u.DID, u.ENDGID, u.NVMSETID, u.CapacityAdjust)
		b = append(b, u.AvailableSpare, u.PercentageUsed, uint8(len(u.Channels)), 16, 0, 0)
		b = appendU16(b, u.Channels...)
	}
	return b, nil
}

// CapacityConfiguration is a Capacity Configuration Descriptor of the Supported
// Capacity Configuration List log page (figures "Capacity Configuration
// Descriptor" to "Media Unit Configuration Descriptor").
type CapacityConfiguration struct {
	ID     uint16
	DID    uint16 // domain; 0 not told
	Groups []EnduranceGroupConfiguration
}

// EnduranceGroupConfiguration is an Endurance Group Configuration Descriptor.
type EnduranceGroupConfiguration struct {
	ENDGID            uint16
	CapacityAdjust    uint16  // capacity adjustment factor; 0 not told
	TotalCapacity     Uint128 // bytes; 0 not told
	SpareCapacity     Uint128 // bytes; 0 not told
	EnduranceEstimate Uint128 // 10^9 bytes; 0 not told
	NVMSets           []uint16
	Channels          []ChannelConfiguration
}

// ChannelConfiguration is a Channel Configuration Descriptor.
type ChannelConfiguration struct {
	ID         uint16 // 0xffff not told
	MediaUnits []uint16
}

// ParseCapacityConfigurations reads the Supported Capacity Configuration List
// log page. Counts and lengths that lead outside of b are a DecodeError.
func ParseCapacityConfigurations(b []byte) ([]CapacityConfiguration, error) {
	c := cursor{what: "capacity configuration list", b: b}
	n := c.u8()
	c.skip(15)
	var list []CapacityConfiguration
	for range c.count(uint64(n), 32) {
		cfg := CapacityConfiguration{ID: c.u16(), DID: c.u16()}
		groups := c.u16()
		c.skip(26)
		for range c.count(uint64(groups), 84) {
			cfg.Groups = append(cfg.Groups, c.enduranceGroup())
			if c.err != nil {
				return nil, c.err
			}
		}
		list = append(list, cfg)
	}
	if c.err != nil {
		return nil, c.err
	}
	return list, nil
}

func (c *cursor) enduranceGroup() EnduranceGroupConfiguration {
	g := EnduranceGroupConfiguration{ENDGID: c.u16(), CapacityAdjust: c.u16()}
	c.skip(12)
	g.TotalCapacity, g.SpareCapacity, g.EnduranceEstimate = c.u128(), c.u128(), c.u128()
	c.skip(16)
	g.NVMSets = c.u16s(int(c.u16()))
	channels := c.u16()
	for range c.count(uint64(channels), 4) {
		g.Channels = append(g.Channels, c.channel())
		if c.err != nil {
			break
		}
	}
	return g
}

func (c *cursor) channel() ChannelConfiguration {
	ch := ChannelConfiguration{ID: c.u16()}
	units := c.u16()
	for range c.count(uint64(units), 8) {
		ch.MediaUnits = append(ch.MediaUnits, c.u16())
		c.skip(4)
		c.skip(int(c.u16())) // what later revisions add to a descriptor
	}
	return ch
}

// AppendCapacityConfigurations appends the bytes of a Supported Capacity
// Configuration List log page.
func AppendCapacityConfigurations(b []byte, list []CapacityConfiguration) ([]byte, error) {
	if len(list) > 0xff {
		return nil, outOfRange("capacity configuration list", "%d configurations", len(list))
	}
	b = append(b, uint8(len(list)))
	b = append(b, make([]byte, 15)...)
	for i := range list {
		cfg := &list[i]
		b = appendU16(b, cfg.ID, cfg.DID, uint16(len(cfg.Groups)))
		b = append(b, make([]byte, 26)...)
		for j := range cfg.Groups {
			b = cfg.Groups[j].append(b)
		}
	}
	return b, nil
}

func (g *EnduranceGroupConfiguration) append(b []byte) []byte {
	b = appendU16(b, g.ENDGID, g.CapacityAdjust)
	b = append(b, make([]byte, 12)...)
	for _, v := range [...]Uint128{g.TotalCapacity, g.SpareCapacity, g.EnduranceEstimate, {}} {
		b = binary.LittleEndian.AppendUint64(b, v.Lo)
		b = binary.LittleEndian.AppendUint64(b, v.Hi)
	}
	b = appendU16(b, uint16(len(g.NVMSets)))
	b = appendU16(b, g.NVMSets...)
	b = appendU16(b, uint16(len(g.Channels)))
	for _, ch := range g.Channels {
		b = appendU16(b, ch.ID, uint16(len(ch.MediaUnits)))
		for _, u := range ch.MediaUnits {
			b = appendU16(b, u, 0, 0, 0)
		}
	}
	return b
}

func appendU16(b []byte, v ...uint16) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	return b
}
