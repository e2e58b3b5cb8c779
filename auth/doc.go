// Package auth asks the callers of an HTTP endpoint who they are. A [Guard] stands in front of a handler and lets a
// request in whose bearer token one of its verifiers knows. It knows neither where tokens come from nor what is behind it.
package auth
