// Package pins compares the tools of servers with those that are trusted, which it keeps. It asks no server.
//
// # Decisions
//
//   - Tools are pinned by a hash of all that a server lists of them, except _meta and icons, which no agent reads. The first list
//     that has tools is trusted, under the server's name and identity. Where nothing is held back, new tools are trusted when they
//     are seen, so that only changes are reported; where any gateway of the directory holds back, none trusts for the others.
//   - Pins are read again when a tool is not trusted, so that gateways see what another process accepts, without a message.
//   - What fails is not trusted: a damaged file is one that trusts no tool.
//   - Pins are not in the store that gateways of several machines share. While it is down, a gateway would have to trust without
//     knowing, or to hold back the tools of all servers. Each gateway keeps its own, or several use one state directory on a file system
//     whose locks hold over machines.
package pins
