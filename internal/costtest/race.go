//go:build race

package costtest

// slower is how much slower the race detector makes a program.
const slower = 15
