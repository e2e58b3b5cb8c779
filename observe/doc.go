// Package observe counts, times and traces what a gateway does, for those who run it: metrics of Prometheus, traces of
// OpenTelemetry, a line in the log for each call, and whether the gateway is ready. It is told of runs and wraps what
// calls tools; nothing that works for pipelines knows of it. No argument, no data and no text of an error goes through
// it: names that the operator has chosen, codes, numbers and times are all there is to see.
package observe
