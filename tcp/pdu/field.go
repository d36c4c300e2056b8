package pdu

// field is a field of a PDU header: where it begins, and its name in the
// specification, empty where the rest is reserved.
type field struct {
	off  uint32
	name string
}

// The fields of the headers, in order; each reaches to the next one's begin.
// The common header is the same for all.
var (
	commonFields = []field{{0, "PDU-Type"}, {1, "FLAGS"}, {2, "HLEN"}, {3, "PDO"}, {4, "PLEN"}}
	dataFields   = []field{{OffCCCID, "CCCID"}, {OffTTAG, "TTAG"}, {OffDATAO, "DATAO"}, {OffDATAL, "DATAL"}, {20, ""}}
	fieldsOf     = map[Type][]field{
		TypeICReq:       {{offPFV, "PFV"}, {offPDA, "HPDA"}, {offDGST, "DGST"}, {12, "MAXR2T"}, {16, ""}},
		TypeICResp:      {{offPFV, "PFV"}, {offPDA, "CPDA"}, {offDGST, "DGST"}, {offMAXH2CDATA, "MAXH2CDATA"}, {16, ""}},
		TypeCapsuleCmd:  {{8, "CCSQE"}},
		TypeCapsuleResp: {{8, "RCCQE"}},
		TypeH2CData:     dataFields,
		TypeC2HData:     dataFields,
		TypeR2T:         {{OffCCCID, "CCCID"}, {OffTTAG, "TTAG"}, {OffDATAO, "R2TO"}, {OffDATAL, "R2TL"}, {20, ""}},
	}
)

// fieldName returns the field of a header that byte off is in, "" if none.
func fieldName(t Type, off uint32) string {
	if off >= uint32(t.HeaderLen()) {
		return ""
	}
	list := fieldsOf[t]
	if off < CommonSize {
		list = commonFields
	}
	name := ""
	for _, f := range list {
		if f.off <= off {
			name = f.name
		}
	}
	return name
}
