package tcptest

import (
	"bytes"
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// Command returns the command in a command capsule.
func Command(p *pdu.PDU) (cmd nvme.Command) {
	(*pdu.CapsuleCmd)(p.Header).Command(&cmd)
	return cmd
}

// Opcode checks the opcode of a command capsule.
func Opcode(op nvme.Opcode) Check {
	return func(p *pdu.PDU) error {
		if cmd := Command(p); cmd.Opcode != op {
			return fmt.Errorf("opcode %#x, want %#x", uint8(cmd.Opcode), uint8(op))
		}
		return nil
	}
}

// CommandIs checks the command of a command capsule.
func CommandIs(ok func(cmd *nvme.Command) bool) Check {
	return func(p *pdu.PDU) error {
		if cmd := Command(p); !ok(&cmd) {
			return fmt.Errorf("command %+v is not as expected", cmd)
		}
		return nil
	}
}

// Data checks the data of a PDU, byte by byte.
func Data(want []byte) Check {
	return func(p *pdu.PDU) error {
		if len(p.Data) != len(want) {
			return fmt.Errorf("%d bytes of data, want %d", len(p.Data), len(want))
		}
		if !bytes.Equal(p.Data, want) {
			for i := range want {
				if p.Data[i] != want[i] {
					return fmt.Errorf("byte %d of %d of the data is %#02x, want %#02x", i, len(want), p.Data[i], want[i])
				}
			}
		}
		return nil
	}
}

// DataLen checks how much data a PDU carries.
func DataLen(n int) Check {
	return func(p *pdu.PDU) error {
		if len(p.Data) != n {
			return fmt.Errorf("%d bytes of data, want %d", len(p.Data), n)
		}
		return nil
	}
}

// H2C checks the header of an H2CData: that it answers the R2T with tag ttag of
// command cid, carries n bytes at offset off, and whether it is the last one.
func H2C(cid, ttag uint16, off, n uint32, last bool) Check {
	return func(p *pdu.PDU) error {
		h := (*pdu.H2CData)(p.Header)
		got := pdu.H2CDataFields{CCCID: h.CCCID(), TTAG: h.TTAG(), DATAO: h.DATAO(), DATAL: h.DATAL()}
		if want := (pdu.H2CDataFields{CCCID: cid, TTAG: ttag, DATAO: off, DATAL: n}); got != want {
			return fmt.Errorf("%+v, want %+v", got, want)
		}
		if l := p.Flags()&pdu.LastPDU != 0; l != last {
			return fmt.Errorf("LAST_PDU %v, want %v", l, last)
		}
		return nil
	}
}
