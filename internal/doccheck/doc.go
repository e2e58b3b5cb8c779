// Package doccheck keeps the documents true: its test runs the commands that they show and compares what comes out.
//
// Commands stand in fenced blocks marked console, as a reader sees them in a terminal:
//
//	```console
//	$ echo one; echo two
//	one
//	...
//	$ ls missing
//	ls: ...
//	(exit 2)
//	```
//
// A line that begins with "$ " is a command; lines that begin with "> " go on with it. The lines after it are what it
// writes, on standard output and standard error together. A line "..." stands for any number of lines, "..." in a line
// for any characters. Where nothing is shown, anything may come. A command must exit with 0, or with what a last line
// "(exit N)" says. Every document runs in a fresh copy of the repository, each command in a shell of its own, with
// the binaries of the repository first on the path. Blocks marked otherwise, such as sh, are not run.
package doccheck
