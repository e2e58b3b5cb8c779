// Package upstream keeps sessions to the MCP servers behind the gateway: it reads where they are, starts them when
// they are first needed, keeps one shared session each, lists their tools and calls them. It is the only place that
// decides what flows out of a tool's result. It knows nothing of pipelines, of the agents in front, of logging or of
// the environment: values it needs are given to it.
package upstream
