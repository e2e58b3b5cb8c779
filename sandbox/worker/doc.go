// Package worker is the far end of the sandbox: a process that runs chains of allow-listed programs, each in a jail of
// its own, for one gateway that talks to it over standard input and output. It trusts the gateway and no program.
//
// The binary that holds the package plays three roles, see [Main]: the worker,
// a jailed program that is linked in, and the host, the first process of a container, which has one worker after another. The package knows no pipeline and no tool.
//
// # Decisions
//
//   - The worker opens a file of the workspace once, and can reach no other: within the directory, regular, without
//     waiting. The Landlock rule of the jail names the open file, so a path that changes a moment later opens nothing.
//     jq gets descriptors, since it can open nothing. In the workspace itself each entry but `.mcsh` is granted,
//     because a Landlock rule has no exception.
//   - The process that starts a worker also locks it in, between fork and exec. Landlock belongs to a thread, and only
//     an exec gives all threads one domain. One process of the worker's binary looks for programs on the machine, and
//     every worker gets the result.
//   - Applets wait for work, locked in. An idle worker has one, or up to four that the run before has used; a chain that
//     needs more starts them. They read their work from standard input, and their limits are set from outside before
//     they get it.
//   - The jq of a for_each is one process for many inputs, and an input may be many items: starting and compiling was
//     nearly all that an item cost. A limit or a crash ends the process. A process that has used a quarter of its memory
//     or its timeout gets no further input, so each input finds what a process of its own would have.
//   - A jq that has ended by itself gets another program, in this run or the caller's next: at most 50 programs with
//     equal limits, while it has used at most one second of processor time and 16 MiB. It forgets one program before
//     it reads the next. Commands with named inputs or files have a process of their own.
//   - head, and tail from a line on, are no processes: passing on a part of the input is a few lines in the worker,
//     and a process costs a millisecond. A failure before such a part, once the part has all it wants, is no failure;
//     the order of the data decides that.
//   - Programs get LC_CTYPE alone. C.UTF-8 differs from C in nothing else, and its other eleven files cost a hundredth
//     of each start.
//   - Budgets belong to a run, and the worker measures them: a control group of our own needs rights that a container
//     lacks. A process over the limit is refused, not queued, because chains of one pipeline can wait for each other.
//   - The worker pumps between fused commands, so that each has exact counts and a sample of its input for errors.
//   - Directories of commands wait, empty, for the next command: making and removing one takes as long as building its jail
//     three times.
//   - A scratch directory is locked (flock) while its gateway lives. The next gateway recognises leftovers of a killed
//     one by the missing lock.
package worker
