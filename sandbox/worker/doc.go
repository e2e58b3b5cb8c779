// Package worker is the far end of the sandbox: a process that runs chains of allow-listed programs, each in a jail of
// its own, for one gateway that talks to it over standard input and output. It trusts the gateway and no program.
//
// The binary that holds the package plays three roles, see [Main]: the worker,
// a jailed program that is linked in, and the host, the first process of a container, which has many workers. The package knows no pipeline and no tool.
package worker
