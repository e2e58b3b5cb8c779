// Package stdio serves one client on standard input and output. It answers all requests that came before the end of the
// input. It knows messages and sessions, but neither pipelines nor the servers behind a gateway.
package stdio
