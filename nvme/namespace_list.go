package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// ActiveNamespaces returns the identifiers of the active namespaces, in order
// (CNS 02h).
func (c *Controller) ActiveNamespaces(ctx context.Context) ([]uint32, error) {
	list, err := c.activeNamespaces(ctx, c.adminCommand)
	return list, c.opError("identify active namespaces", 0, err)
}

type adminFunc func(ctx context.Context, cmd *Command, buf []byte) (Completion, error)

// maxNamespaces bounds what a hostile controller can make the host list.
const maxNamespaces = 1 << 20

func (c *Controller) activeNamespaces(ctx context.Context, do adminFunc) ([]uint32, error) {
	if !c.asksFor(CNSActiveNamespaces) {
		return c.tryNamespaces(ctx, do)
	}
	var all []uint32
	buf := make([]byte, IdentifyDataSize)
	for last := uint32(0); ; {
		cmd := Command{Opcode: AdminIdentify, NSID: last, CDW10: uint32(CNSActiveNamespaces)}
		if _, err := do(ctx, &cmd, buf); err != nil {
			if last == 0 && rejected(err) {
				return c.tryNamespaces(ctx, do)
			}
			return nil, err
		}
		for i := 0; i < len(buf); i += 4 {
			n := binary.LittleEndian.Uint32(buf[i:])
			switch {
			case n == 0:
				return all, nil
			case n <= last || n > 0xfffffffe:
				return nil, fmt.Errorf("%w: active namespace list not ascending (%#x after %#x)", ErrProtocol, n, last)
			case len(all) == maxNamespaces:
				return nil, fmt.Errorf("%w: more than %d active namespaces", ErrProtocol, maxNamespaces)
			}
			all, last = append(all, n), n
		}
		if last == 0xfffffffe {
			return all, nil
		}
	}
}

// tryNamespaces is activeNamespaces for controllers without a list.
func (c *Controller) tryNamespaces(ctx context.Context, do adminFunc) ([]uint32, error) {
	var all []uint32
	buf := make([]byte, IdentifyDataSize)
	for n := uint32(1); n <= min(c.id.Load().NN, maxNamespaces); n++ {
		cmd := Command{Opcode: AdminIdentify, NSID: n, CDW10: uint32(CNSNamespace)}
		_, err := do(ctx, &cmd, buf)
		switch {
		case errors.Is(err, StatusInvalidNamespace):
		case err != nil:
			return nil, err
		case binary.LittleEndian.Uint64(buf) != 0: // NSZE
			all = append(all, n)
		}
	}
	return all, nil
}
