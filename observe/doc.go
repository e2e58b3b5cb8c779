// Package observe gives operators Prometheus metrics, OpenTelemetry traces, a log line for each call, and the readiness of
// the gateway. It observes runs and wraps the pool that calls tools; the engine does not know of it. It shows names chosen
// by the operator, codes, numbers and times, but no arguments, no data and no text of errors.
//
// # Decisions
//
//   - `stages` and `gateway` declare the few functions that observers implement, so they do not import metrics and
//     traces, which cost almost nothing when they are off. A terminal polls the report of a run; a run without an
//     observer pays nothing.
package observe
