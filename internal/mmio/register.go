//qpoll:hot

package mmio

// Register32 is a 32-bit register that was found to be within its window: a
// doorbell. The zero value has no register and must not be accessed.
type Register32 struct{ p *uint32 }

// Valid reports whether there is a register.
func (r Register32) Valid() bool { return r.p != nil }

// Load reads the register.
func (r Register32) Load() uint32 { return load32(r.p) }

// Store writes the register.
func (r Register32) Store(v uint32) { store32(r.p, v) }

// Register64 is Register32 for 64 bits.
type Register64 struct{ p *uint64 }

// Valid reports whether there is a register.
func (r Register64) Valid() bool { return r.p != nil }

// Load reads the register.
func (r Register64) Load() uint64 { return load64(r.p) }

// Store writes the register.
func (r Register64) Store(v uint64) { store64(r.p, v) }
