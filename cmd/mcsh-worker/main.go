// Command mcsh-worker runs allow-listed programs in jails for the mcsh gateway, which starts it and talks to it over
// standard input and output. It is of no use by itself.
package main
