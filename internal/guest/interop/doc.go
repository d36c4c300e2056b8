// Package interop proves that our initiator and our embedded target work with
// those of the Linux kernel. It consists of tests, behind the build tag guest:
//
//	go test -tags guest ./internal/guest/interop
//
// TestInitiator runs packages nvme and tcp on the host against the kernel's
// target in a guest; TestTarget has the kernel's initiator and its native
// multipath in a guest work with a target of package tcp/target on the host.
// Each boots one guest for all of its subtests, which depend on nothing but
// that guest, so that any of them can be run alone:
//
//	go test -tags guest -run TestInitiator/ANA ./internal/guest/interop
//
// A subtest also fails when the guest's kernel has logged an NVMe warning that
// it did not provoke on purpose.
package interop
