package pdu_test

import (
	"fmt"

	"github.com/qpoll/qpoll/tcp/pdu"
)

// A controller sends data with header digest, and the host looks at it.
func Example() {
	params := pdu.Params{HDGST: true, HPDA: 7} // data at multiples of 32 bytes

	var buf [pdu.MaxPDO]byte
	layout := params.Layout(pdu.TypeC2HData)
	(*pdu.C2HData)(buf[:]).Encode(&layout, pdu.LastPDU, pdu.C2HDataFields{CCCID: 5, DATAL: 4096})
	n := layout.Finish(buf[:], true)
	fmt.Println("bytes before the data:", n)

	rcv := pdu.NewReceiver(pdu.Host, params, pdu.Limits{})
	shape, err := rcv.Check((*pdu.Common)(buf[:]))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pdu.VerifyHeader(buf[:], pdu.C2HDataSize); err != nil {
		fmt.Println(err)
		return
	}
	h := (*pdu.C2HData)(buf[:])
	fmt.Println(shape.Type(), "for command", h.CCCID(), "with", shape.Data(), "bytes at", shape.PDO())

	h.Common().SetPDO(30)
	_, err = rcv.Check(h.Common())
	fmt.Println(err)
	// Output:
	// bytes before the data: 32
	// C2HData for command 5 with 4096 bytes at 32
	// nvme/tcp: C2HData: Invalid PDU Header Field: PDO 30 (0x1e): not a multiple of 32
}
