// Package archtest checks the rules of the source tree: which package may import which, where heavy dependencies enter,
// forbidden calls, the length of files and functions, and that everything is documented. It reads the source and runs
// nothing.
package archtest
