#include "textflag.h"

// func vfork() (pid, errno uintptr)
//
// The return address is in a register, which the child has for itself.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVD $220, R8    // clone
	MOVD $0x4111, R0 // CLONE_VM, CLONE_VFORK, SIGCHLD
	MOVD ZR, R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	SVC
	MOVD ZR, R1
	CMP  $0, R0
	BGE  done
	NEG  R0, R1
	MOVD $-1, R0

done:
	MOVD R0, pid+0(FP)
	MOVD R1, errno+8(FP)
	RET
