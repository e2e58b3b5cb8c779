// Package sandbox runs the command stages of pipelines where they can do no harm: in a worker process of a backend,
// one worker to each run, every command in a jail of its own.
//
// A [Pool] is what the engine asks for commands. Behind it a [Driver] knows how to start a worker; package wire is how
// the two talk, package worker is the other end, package programs says which commands exist and what their arguments
// may be. This package knows no container engine and starts no process.
//
// # Life of a worker
//
// The pool is the only one that keeps workers. A lease is a caller's hold on a worker, for up to 50 runs and 10 minutes. A
// worker is in one of these states:
//
//	starting   it says hello, for anybody or, in the container of an earlier one, for a caller
//	idle       it waits for anybody
//	leased     a run, a check or a conversion of a page has it
//	held       it has checked commands of a plan, and waits for more of them and for the plan's run
//	waiting    it was cleared, and waits for its caller's next run
//	ended      it is dead, with all processes and files, and so is its container
//
//	from      event                                             to        who acts
//	–         fewer are idle or starting for anybody than       starting  refill
//	          should be
//	–         a run finds none that fits                        leased    take, dial
//	starting  hello and an answer                               idle or   add
//	                                                            waiting
//	starting  error, or no answer for 10 s                      ended     watch
//	idle      a run without a better one takes it; it answers   leased    take
//	waiting   a run of its caller takes it; it answers          leased    take
//	held      a check or the run of its plan takes it; it       leased    take
//	          answers
//	these 3   it does not answer the ping of who takes it       ended     take
//	leased    a check has ended well                            held      releaseTo
//	leased    a run has ended well, the lease goes on           waiting   release: Renew
//	leased    a limit, a timeout, a cancelled run, an unknown   starting  release: Replace
//	          caller; the lease goes on, and there is a
//	          container
//	leased    the same without a container; the lease is over   ended     session.Close
//	held      its plan has ended without a run                  as after  plan.Close
//	                                                            a run
//	waiting,  a minute has passed                               ended     watch
//	held
//	waiting,  more are leased, held and waiting than runs may   ended     evict, the one that has
//	held      be, or more are held and waiting than may wait              waited longest first
//	any       its connection ends                               ended     watch, session
//	any       the pool is closed                                ended     Close
//
// A run takes the worker that its plan holds, else one that waits for its caller, else one that is idle. One that is still
// starting counts too: the run waits for it. A lease whose caller has no name ends with its first run, and so does every lease
// where a worker serves one run (`--sandbox-isolation run`).
//
// # Decisions
//
//   - Scripts of jq, awk and sed are hostile work and are read in the jail, before anything is called. The gateway
//     knows the options of these programs, not their languages. For jq and awk the answer is a verdict: a mistake, or
//     the traits that the engine needs. Nothing runs without a verdict. Equal arguments are checked once. The traits of
//     sed come from two patterns, which take time and memory as the script is long.
//   - Workers, checks and conversions of pages follow one rule (turns.go): a caller gets another place only while it
//     holds fewer than are free, and waiting callers take turns. Callers without a place therefore find one. Callers
//     on this machine are exempt.
//   - A worker serves up to 50 runs of one caller, one after another: starting and ending it is three quarters of the
//     cost of a small run. Between runs it removes everything that is left, and any doubt ends it. Any end of a
//     command but its own exit, a request that an unknown proxy has forwarded, and `--sandbox-isolation run` mean a
//     new worker. Anonymous callers are separated by address; a new worker for each of their runs cost ten times the
//     call.
//   - A container holds one worker at a time and serves one caller, so the pool's lease of a worker is that of its
//     container, and a backend keeps no workers itself. Starting a container takes a hundred times as long as starting
//     a worker in one, so where only the worker must be new it is replaced there ([Worker]).
//   - A worker that has waited is pinged before it serves: a container can be frozen from outside at any time.
//   - Every fallback is reported. `--sandbox auto` may choose a weaker backend; the reason travels in [Report].Notes
//     to the log, `run -v`, `doctor`, `commands` and the agent.
//   - Items of a for_each that wait go through one process together (batch.go): those of jq in frames, and the lines of
//     commands that map lines (tr, cut, a plain s of sed), whose output for many lines is the concatenation of their
//     outputs for each. The grammar claims this only where it proves it, and tests compare with the real tools. A batch
//     only answers items that end by themselves, within narrow bounds. Any other item is run alone, as an ordinary
//     command: so its result, its error and its limits are those of a run of its own.
package sandbox
