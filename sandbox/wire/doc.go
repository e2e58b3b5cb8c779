// Package wire is the protocol between the gateway and one sandbox worker: many chains of commands at a time over one
// pair of byte streams. It knows frames, credit and messages; it starts no process and knows no program.
//
// # Frames
//
// A frame is a header of nine bytes and a payload:
//
//	kind   1 byte
//	id     4 bytes, big endian: the run, or 0
//	length 4 bytes, big endian: bytes of payload
//
// Every kind has one direction and bounds of length; [kinds] is the table. A frame of an unknown kind, in the wrong
// direction, with a length out of bounds or at the wrong time ends the connection: both ends are the same release, so
// that anything else is a fault or an attack. Nothing is allocated before the length has been checked.
//
//	worker → gateway                          gateway → worker
//	hello    JSON, once, first                run      JSON of a chain, which it starts under a new id
//	data     output of a run                  data     input of a run
//	credit   4 bytes: more input is welcome   end      the input has ended
//	deaf     no more input is wanted          credit   4 bytes: more output is welcome
//	outcome  JSON, the last frame of a run    cancel   kill the run
//	                                          renew    forget everything
//
// # Flow
//
// Each direction of a run begins with a credit of [Window] bytes. A sender of data spends credit; the reader
// gives it back, in steps of a quarter of the window. So the reading loop of either end never waits for a
// slow reader, one slow run never stops another, and the memory of a run is bounded by its window. Data beyond the
// credit ends the connection.
//
// # Life of a run
//
// The gateway chooses ids; two runs at a time have different ones. A run ends with its outcome and in no other way: after
// cancel too the worker answers with an outcome, when all of its processes are dead. Frames for a run that were on their
// way when the outcome was sent are dropped by the worker; after the outcome the worker sends nothing for it. At most
// [MaxStreams] run at a time; one more ends the connection. The chains of one pipeline can wait for each other, as
// branches do that are fed from one input, so a limit that a pipeline can reach would be a deadlock: the engine keeps
// what it runs side by side below [Slots], and the gateway's queue in front of it is a safeguard only.
//
// The chain `{}` is a ping: its outcome comes at once.
//
// # Checks
//
// A command with a [Check] does not do its work: its arguments are checked, within tighter bounds. The data of a check of a
// script is its verdict.
//
// # Items
//
// The input of a command with Batch are many items. A jailed program sees them as one input. An applet gets them one
// after another as four bytes of length and as many bytes, at most [MaxItem]. It runs on each of them, and its output are
// their answers in the same form and order, see [AppendAnswer]. It may end before it has run on all of them. It exits with
// a status other than 0 if the first item without an answer has to run alone: its answer would be larger than MaxAnswer, or
// its message speaks of a limit.
//
// # Inputs
//
// An input that commands read beside their standard input comes before the runs that need it: it is the data of a run
// whose chain has a [Chain.Keep] and no commands. The worker keeps the data on disk, and the outcome says that all of it is
// there. Up to [MaxInputs] are on their way besides the runs. A run whose inputs have not all been kept is refused.
//
// # Another run of a pipeline
//
// A gateway that keeps a worker for another pipeline renews it: the worker ends and removes all that it has left of what
// it ran, and takes the next frame when that is done, so that the answer to a ping says so.
// A renew frame while something runs ends the connection, and so does a worker that cannot clear itself. Ids go on.
//
// When the gateway's stream ends the worker kills everything and exits. When the worker's stream ends every run fails
// with [ErrLost]. The gateway pings the worker once in [Silence], and gives it up if it does not answer as long.
//
// # Chunks
//
// A container has one connection and one worker at a time. Between gateway and container the streams of its workers follow
// each other in chunks: four bytes of length, big endian, and as many bytes, at most 64 KiB. An empty chunk ends a stream.
// The gateway sends one when the worker is to end; the container answers with one when the worker is dead and nothing is
// left of it, and the hello of the next worker follows. Chunks have no flow control of their own: what is in them has.
package wire
