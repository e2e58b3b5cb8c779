// Package stdio serves one client on standard input and output: lines come in, whole messages go out, and what was asked
// before the input ended is answered. It knows messages and sessions, but neither pipelines nor servers behind a gateway.
package stdio
