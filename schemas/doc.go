// Package schemas holds all uses of JSON Schema: it makes the schema of the pipeline language from the Go types of
// stages, checks stages against it, and checks a tool's arguments against the schema of the tool's server. It reports
// mistakes in sentences that an agent can act on. It knows nothing of MCP sessions and never fetches anything: it does
// not compile a schema that refers to another document.
//
// # Decisions
//
//   - Our own evaluator checks arguments against the library's compiled schema: the library's validator cannot be
//     interrupted, counts no work and has no bound of its depth. None of its hooks (patterns, formats, vocabularies) is
//     called for every schema that it applies, or knows which check calls it. A fuzzer compares the verdicts. Compiling
//     is bounded before it begins (weigh, in compile.go), since the library takes quadratic time. If a check costs too much, a
//     note says so and the server checks alone.
//   - One tree (document.go) serves all that read a schema without compiling it: it keeps the order of members, repeated
//     names and the text. Its values are counted before they are read.
package schemas
