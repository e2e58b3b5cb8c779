//go:build linux

package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// arm64 has no calls that a newer one replaced.
var legacy, legacyOpen, legacyAsking, legacyWalking, legacyScratch []uint32
