#include "textflag.h"

// The options of DMB: the outer shareable domain, which devices are in.
#define OSHLD $1
#define OSHST $2
#define OSH $3

// func load8(p *uint8) uint8
TEXT ·load8(SB), NOSPLIT, $0-9
	MOVD  p+0(FP), R0
	MOVBU (R0), R1
	MOVB  R1, ret+8(FP)
	RET

// func load16(p *uint16) uint16
TEXT ·load16(SB), NOSPLIT, $0-10
	MOVD  p+0(FP), R0
	MOVHU (R0), R1
	MOVH  R1, ret+8(FP)
	RET

// func load32(p *uint32) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVD  p+0(FP), R0
	MOVWU (R0), R1
	MOVW  R1, ret+8(FP)
	RET

// func load64(p *uint64) uint64
TEXT ·load64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD (R0), R1
	MOVD R1, ret+8(FP)
	RET

// func store8(p *uint8, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-9
	MOVD  p+0(FP), R0
	MOVBU v+8(FP), R1
	MOVB  R1, (R0)
	RET

// func store16(p *uint16, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-10
	MOVD  p+0(FP), R0
	MOVHU v+8(FP), R1
	MOVH  R1, (R0)
	RET

// func store32(p *uint32, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVD  p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVW  R1, (R0)
	RET

// func store64(p *uint64, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	MOVD R1, (R0)
	RET

// func StoreFence()
TEXT ·StoreFence(SB), NOSPLIT, $0-0
	DMB OSHST
	RET

// func CombinedFence()
TEXT ·CombinedFence(SB), NOSPLIT, $0-0
	DMB OSHST
	RET

// func LoadFence()
TEXT ·LoadFence(SB), NOSPLIT, $0-0
	DMB OSHLD
	RET

// func Fence()
TEXT ·Fence(SB), NOSPLIT, $0-0
	DMB OSH
	RET
