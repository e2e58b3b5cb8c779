//go:build linux

package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// Calls that newer architectures do not have, because a newer call does the same.
var (
	legacy = []uint32{
		unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_PIPE, unix.SYS_DUP2, unix.SYS_TIME, unix.SYS_GETPGRP,
		unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL,
	}
	legacyOpen    = []uint32{unix.SYS_OPEN}
	legacyAsking  = []uint32{unix.SYS_ACCESS, unix.SYS_STAT}
	legacyWalking = []uint32{unix.SYS_READLINK, unix.SYS_LSTAT}
	legacyScratch = []uint32{unix.SYS_UNLINK}
)
