// Package pdu encodes, decodes and checks the protocol data units of the NVMe
// TCP transport.
//
// Every PDU header has a view, an array type of the exact header length with
// one accessor per field: [ICReq], [ICResp], [TermReq], [CapsuleCmd],
// [CapsuleResp], [H2CData], [C2HData] and [R2T]. A view is laid over received
// or outgoing bytes with a conversion, (*pdu.C2HData)(b), which checks the
// length once; the accessors then need no bounds check. [Common] is the view
// of the eight bytes that all headers start with.
//
// [Params] holds what the connection handshake settled. From it come a
// [Layout], with which the headers of one type are encoded, and a [Receiver],
// which checks the common header of each PDU that arrives and says in a
// [Shape] where its parts lie. Neither allocates. What is wrong with a PDU is
// told in an [Error], from which a TermReq can be built.
//
// The Append functions and [Reader] handle whole PDUs; they are for the
// handshake, for tools and for scripted peers in tests, not for the data path.
//
// Field names, constants and rules are those of the NVMe TCP Transport
// Specification, revision 1.1; "bytes a:b" in comments are offsets
// from the start of the PDU, as in its figures. All fields are little-endian.
//
// Nothing in this package is synchronised. Layout and Receiver values are
// read-only once made and may be shared.
package pdu
