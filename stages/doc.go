// Package stages is the pipeline language and its engine: stages are data that compile to filters, and filters run
// joined by bounded pipes. It knows nothing of MCP, docker, HTTP or logging; tools and commands reach it through the
// two interfaces that it declares.
//
// # Decisions
//
//   - Compile makes a [Step], Bind a [Filter]. A run has its own sandbox session, meters and windows, so that one
//     compiled pipeline can run many times and no context carries them.
//   - Stages compile side by side, so that the servers a plan needs start together.
//   - [Place] is text ("3.users.1"). People, logs and JSON read it the same, and nesting needs no second type.
//   - [Schemas] check the form of a stage. The published schema is the one that is enforced; this package needs no
//     validator and repeats none of its checks.
//   - A command declares its [Traits] when it is checked. This package alone sees the stages behind a command, so it
//     decides which commands write line by line.
//   - A for_each starts no item while a finished result waits to be read. That is why head is cheap: results are
//     bounded by bytes, items by the reader.
//   - A for_each that runs one jq keeps many items on their way to the process. Waiting for each answer was most of
//     the cost of an item. The engine keeps items until they are answered; when a process ends, those without an
//     answer go to another one.
//   - A named input is complete before its command starts. It is a flow of its own whose last link sends it to the
//     worker, so no order of reading can deadlock.
//   - An input with effects starts when its command is first called, after everything before it has succeeded. Inputs
//     that only read start at once.
//   - The kind of data travels beside it: each pipe has a header, which is set before the first byte. No wrapper of a
//     reader or writer can lose it, and runs keep it.
//   - A stored output is complete or absent, with the reason: half of a stage's data looks like all of it. A shortened
//     output is made again from the nearest complete one, where the stages between depend on nothing but their input.
//   - A run continues from its stored plan, never from stages that are typed again. The plan is checked again, starts
//     at the last complete output, and each for_each answers the items whose results were kept. One run at a time
//     continues another, and keeps that claim once it has had an effect.
//   - The final arguments identify an effect. Plans and places may change between runs; arguments say what would
//     happen twice. A run keeps a hash of each call with an effect and inherits those of the runs it continues. Where
//     the list could not be kept, no call with an effect runs behind `from`.
//   - An effectHold permits a call with an effect to be sent, for the call and for each item around it. It is asked at the
//     moment of sending: only then is it known whether a failure elsewhere may still end the item.
//   - A run that was submitted is one that has stopped before its first stage, and a shard is one that has stopped before its
//     for_each. Workers continue them as any gateway continues the run of a dead one, so there is one way to go on, and
//     nothing is called twice that was not called twice before there were workers.
//   - A run whose process has ended again and again is continued by a cautious one, which runs one item at a time and notes each before it
//     begins. So the run behind that knows the item that ends its process, which fails, and goes on with the others.
//   - A shard ends when it has run for some time or has much output, and leaves its other items to the next one. So slow items and
//     large results need no estimate. The items of the first second run here: a small for_each costs nothing, and their pace
//     sizes the shards.
//   - `from` stands where nothing flows in: first in a pipeline, an input or a branch. Elsewhere it would drop the
//     data.
//   - `paginate` takes paths, not programs. A path is short, its work is known beforehand, and it keeps the bytes.
//     Only tools that read are paged: nobody means a hundred calls with an effect.
//   - A bare JSON value fills an argument as text where the tool wants a string: a line `17` has no type of its own.
//   - A failing run reports its first real failure. Other links then end with echoes (errStopped, errBroken,
//     io.ErrClosedPipe), which never replace it. An *Error is never an echo, even if it wraps one.
package stages
