// Package jail makes processes that can only read file descriptor 0 and write 1 and 2.
//
// There are two doors. A [Cell] starts a program that is locked in from its first instruction: resource limits, no
// capabilities, no_new_privs, Landlock with every right of the running kernel, and a system call filter that permits
// exactly one program start. The child does all that by itself between its birth and its exec, with nothing but system
// calls: no process of ours that would have to start first stands between. [Confine] locks the calling process itself in, for code that is linked into the binary: it can open
// nothing and start nothing from then on.
//
// The package does not know which programs exist, what their arguments mean, or where their data comes from. It works
// on Linux only; elsewhere it is empty.
//
// # Decisions
//
//   - The jail of a program is built between fork and exec, by bare system calls in a child that shares the worker's
//     memory (vfork; 20 lines of assembly, and the hooks of the runtime around a fork, which it promises to keep: Go
//     issue 67401). A helper process in Go that locks itself in took six times the processor time of the program. If a
//     later Go refuses the hooks, the build fails, and the helper is the way back.
//   - jq is a process of its own without an exec, under seccomp only: it can open nothing.
package jail
