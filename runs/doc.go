// Package runs keeps the named outputs of runs for a while and for their callers. An output is kept whole, or only its
// beginning if its run wants that. The package knows nothing of stages or of the identity of callers.
//
// # Decisions
//
//   - Outputs are in files without names, encrypted with a key of the process. However the process ends, no file is left
//     to remove or to read. Many outputs share a file, in chunks; it is closed after the last of them.
//   - A run under way is never evicted. A finished run is evicted whole, so an output does not change while it is
//     read.
//   - Other gateways find a run as a journal in a shared store: numbered entries, each written once. The writer of the next number
//     decides how the run goes on: its gateway adds to it and ends it, another one ends it when nothing new has come for 15 s, and
//     behind the end the runs that continue it claim it. So two gateways never both go on, and no clocks are compared.
//   - Few wait for the store: a reply is sent before its run is written, in one entry. A run under way is
//     written after two seconds, and from then on a call that may change something waits until others know that it is made.
//   - A run of which the store knows nothing can be continued by nobody else. So while it has no entry nothing has to be noted.
package runs
