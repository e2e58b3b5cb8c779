// Package runs keeps the named outputs of runs for a while and for their callers. An output is kept whole, or only its
// beginning if its run wants that. The package knows nothing of stages or of the identity of callers.
//
// # Decisions
//
//   - Outputs are in files without names, encrypted with a key of the process. However the process ends, no file is left
//     to remove or to read. Many outputs share a file, in chunks; it is closed after the last of them.
//   - A run under way is never evicted. A finished run is evicted whole, so an output does not change while it is
//     read.
package runs
