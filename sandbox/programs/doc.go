// Package programs is the table of the programs that command stages may run. Every row carries what there is to know
// about one program: what it is for, which executable is behind it, and the grammar of its arguments.
//
// [Parse] checks arguments against the grammar before anything runs and writes them anew in one canonical form, so
// that what a program is given was produced here and not by an agent. The package starts no process and knows nothing
// of jails, containers or pipelines; it knows jq only as the one program whose engine is part of this module.
//
// # Decisions
//
//   - A named input appears to a program as the agent writes it, `@users` in the working directory, so that messages
//     of the program are right.
package programs
