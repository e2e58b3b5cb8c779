//go:build !linux

package toolhive

import "net"

// ownersKnown says that ownerOf cannot tell on this system.
const ownersKnown = false

// ownerOf cannot tell here.
func ownerOf(net.Conn) owner { return ownerUnknown }
