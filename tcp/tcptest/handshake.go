package tcptest

import (
	"fmt"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/tcp/pdu"
)

// ExpectICReq reads the ICReq and remembers it.
func (c *Conn) ExpectICReq() pdu.ICReqFields {
	if c.tb != nil {
		c.tb.Helper()
	}
	p := c.Expect(pdu.TypeICReq)
	c.icreq = (*pdu.ICReq)(p.Header).Fields()
	return c.icreq
}

// Handshake reads the ICReq and answers it with an ICResp of the given fields.
// MAXH2CDATA of 0 counts as 128 KiB; all else is sent as it is, right or wrong.
// Afterwards the connection has the parameters that the two PDUs settle.
func (c *Conn) Handshake(f pdu.ICRespFields) pdu.ICReqFields {
	if c.tb != nil {
		c.tb.Helper()
	}
	c.ExpectICReq()
	c.SendICResp(f)
	return c.icreq
}

// defaultMaxH2CData is MAXH2CDATA, in bytes, where a script does not care.
const defaultMaxH2CData = 128 << 10

// SendICResp is the second half of Handshake.
func (c *Conn) SendICResp(f pdu.ICRespFields) {
	if c.tb != nil {
		c.tb.Helper()
	}
	if f.MAXH2CDATA == 0 {
		f.MAXH2CDATA = defaultMaxH2CData
	}
	b := pdu.AppendICResp(nil, f)
	c.SetParams((*pdu.ICResp)(b).Params(c.icreq))
	c.Send(b)
}

// AcceptConnect reads the Connect command of a queue and accepts it, for
// controller identifier cntlid, with submission queue flow control on only if
// the host wants it.
func (c *Conn) AcceptConnect(cntlid uint16) nvme.ConnectCommand {
	if c.tb != nil {
		c.tb.Helper()
	}
	r := c.ExpectCommand(nvme.OpFabrics, DataLen(nvme.ConnectDataSize))
	cc, err := nvme.ParseConnect(&r.Cmd)
	if err != nil {
		c.Fail(fmt.Errorf("waiting for Connect: %w", err))
	}
	cpl := nvme.Completion{CID: r.Cmd.CID, Result: nvme.ConnectResponse{ControllerID: cntlid}.Result()}
	if cc.Attributes&nvme.ConnectDisableFlowControl != 0 {
		cpl.SQHead = nvme.SQHeadNoFlowControl
	}
	c.Send(c.CapsuleResp(&cpl))
	return cc
}
