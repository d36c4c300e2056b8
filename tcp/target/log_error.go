package target

import "github.com/qpoll/qpoll/nvme"

// errorLog is the Error Information log of a controller: what its admin
// commands were refused for.
type errorLog struct {
	count   uint64
	entries [errorLimit]nvme.ErrorLogEntry // a ring
}

// add records that an admin command has failed.
func (l *errorLog) add(cmd *nvme.Command, s nvme.Status) {
	l.count++
	l.entries[l.count%errorLimit] = nvme.ErrorLogEntry{
		ECNT: l.count, CID: cmd.CID, StatusPhase: uint16(s) << 1, PEL: 0xffff, NSID: cmd.NSID, OPC: cmd.Opcode, LPVER: 1,
	}
}

// page is the log, the latest entry first.
func (l *errorLog) page() (b []byte, err error) {
	for i := range uint64(errorLimit) {
		e := nvme.ErrorLogEntry{}
		if i < l.count {
			e = l.entries[(l.count-i)%errorLimit]
		}
		if b, err = e.AppendBinary(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}
