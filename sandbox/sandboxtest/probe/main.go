// Command probe is a sandbox worker for tests, with one program more: itself, which tries what a jailed program must
// not be able to do.
package main
