package vfiouser

import (
	"context"

	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
)

// The transport is "vfiouser", as SPDK has it; nvme.ParseAddress takes
// "vfio-user" for the same. Its transport address is what Open takes:
//
//	trtype:vfio-user traddr:/run/spdk/disk0
func init() { nvme.Register("vfiouser", pcie.Factory(openAddress)) }

func openAddress(traddr string, _ *pcie.Config) (pcie.Device, error) {
	d, err := Open(context.Background(), traddr, Config{})
	if err != nil {
		return nil, err // not a nil *Device in an interface
	}
	return d, nil
}
