// Package pipelines keeps saved pipelines: files with a description, parameters and a plan, their versions, and the check
// whether they still fit the tools that they call. It offers them as tools of a server named "pipelines". It knows nothing
// of MCP, of sessions with servers, of logging or of the environment.
//
// # Decisions
//
//   - Parameters are values and never text. A plan is kept as a tree, a value takes the place of a whole node, and the engine
//     knows which arguments of commands are values ([stages.Deps].Values): it takes them for operands, whatever they look like.
//     Nothing is quoted, so nothing can be quoted wrongly.
//   - A value cannot be the program of jq, awk or sed: that would be text. jq programs read $params.
//   - There is no kind of stage for it. [Offer] is a [stages.Tools] around another one, made for one plan: it knows the caller,
//     so a private pipeline is hidden on every way to it, and it has what the plan itself may use. A server in a pool of sessions
//     is shared by all callers and would know neither.
//   - A call runs the plan as a part of the run around it ([stages.Pipeline.RunWithin]): limits, memory, the sandbox session, the
//     asker and the holds of effects are those of that run. The call counts as sent with its first effect, so a failure before
//     that has changed nothing and a failure behind it is one whose outcome is unknown.
//   - A plan is checked without values: what a parameter fills is left out of what the tool's schema judges, but for its name.
//     The values are judged when there are any, before anything runs.
//   - The file decides. A version is a record beside it, made when new content is seen; content without a record is a person's.
//     Content that an agent has saved stays the agent's, also when it comes back later. The record is written first, so no
//     file of an agent is ever without one.
//   - An adopted pipeline belongs to a person: an agent saves its next idea under another name. Otherwise the words that a person
//     has read could be replaced for all callers, or callers would see different versions of one name.
package pipelines
