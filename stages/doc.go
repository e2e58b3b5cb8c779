// Package stages is the pipeline language and its engine: stages are data that compile to filters, and filters run
// joined by bounded pipes. It knows nothing of MCP, docker, HTTP or logging; tools and commands reach it through the
// two interfaces that it declares.
package stages
