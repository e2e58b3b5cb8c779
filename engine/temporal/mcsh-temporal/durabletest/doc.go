// Package durabletest holds the tests of durable runs with the programs that operators start: Temporal's server, gateways and workers,
// which the tests kill, stop and cut off. Their MCP server is in the process of the test, which counts the calls that reach it.
// RESULTS.md is what TestCosts has measured.
package durabletest
