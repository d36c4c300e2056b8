package wire

// BootSpecPath is where the agent finds its BootSpec in the initramfs.
const BootSpecPath = "/etc/guest.json"

// PortName is the name of the virtio-serial port between host and agent.
const PortName = "qpoll.agent"

// BootSpec is what the harness tells the agent to do before it serves requests.
type BootSpec struct {
	Modules    []Module    `json:"modules"`
	Interfaces []Interface `json:"interfaces"`
}

// Module is a kernel module in the initramfs. Modules load in order.
type Module struct {
	Path   string `json:"path"`
	Params string `json:"params,omitempty"`
}

// Interface is a network interface of the guest, found by its MAC address.
type Interface struct {
	MAC     string `json:"mac"`
	CIDR    string `json:"cidr"`              // its address, such as 10.0.2.15/24
	Gateway string `json:"gateway,omitempty"` // set on the one with the default route
}
