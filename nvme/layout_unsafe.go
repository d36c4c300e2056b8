package nvme

import "unsafe"

// Sizes and offsets of the wire structures, asserted at compile time: the
// array types differ when the numbers do. The numbers are those of the
// specification's figures.
var (
	_ [CommandSize]byte = [unsafe.Sizeof(Command{})]byte{}
	_ [1]byte           = [unsafe.Offsetof(Command{}.Flags)]byte{}
	_ [2]byte           = [unsafe.Offsetof(Command{}.CID)]byte{}
	_ [4]byte           = [unsafe.Offsetof(Command{}.NSID)]byte{}
	_ [16]byte          = [unsafe.Offsetof(Command{}.MPTR)]byte{}
	_ [24]byte          = [unsafe.Offsetof(Command{}.DPTR)]byte{}
	_ [40]byte          = [unsafe.Offsetof(Command{}.CDW10)]byte{}
	_ [60]byte          = [unsafe.Offsetof(Command{}.CDW15)]byte{}

	_ [CompletionSize]byte = [unsafe.Sizeof(Completion{})]byte{}
	_ [8]byte              = [unsafe.Offsetof(Completion{}.SQHead)]byte{}
	_ [10]byte             = [unsafe.Offsetof(Completion{}.SQID)]byte{}
	_ [12]byte             = [unsafe.Offsetof(Completion{}.CID)]byte{}
	_ [14]byte             = [unsafe.Offsetof(Completion{}.StatusPhase)]byte{}

	_ [SGLDescriptorSize]byte = [unsafe.Sizeof(SGLDescriptor{})]byte{}
	_ [8]byte                 = [unsafe.Offsetof(SGLDescriptor{}.Length)]byte{}
	_ [15]byte                = [unsafe.Offsetof(SGLDescriptor{}.ID)]byte{}

	_ [ConnectDataSize]byte               = [unsafe.Sizeof(ConnectData{})]byte{}
	_ [ConnectDataControllerIDOffset]byte = [unsafe.Offsetof(ConnectData{}.ControllerID)]byte{}
	_ [ConnectDataSubNQNOffset]byte       = [unsafe.Offsetof(ConnectData{}.SubNQN)]byte{}
	_ [ConnectDataHostNQNOffset]byte      = [unsafe.Offsetof(ConnectData{}.HostNQN)]byte{}
)
