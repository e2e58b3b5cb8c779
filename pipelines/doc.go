// Package pipelines keeps saved pipelines: texts with a description, parameters and a plan, in files or in a store that gateways
// share, their versions, and the check whether they still fit the tools that they call. It offers them as tools of a server named
// "pipelines". It knows nothing of MCP, of sessions with servers, of logging or of the environment.
//
// # Decisions
//
//   - Parameters are values and never text. A plan is kept as a tree, a value takes the place of a whole node, and the engine
//     knows which arguments of commands are values ([stages.Deps].Values): it takes them for operands, even if they look like options.
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
//     Content that an agent has saved stays the agent's, even when it comes back later. The record is written first, so no
//     file of an agent is ever without one.
//   - An adopted pipeline belongs to a person: an agent saves its next idea under another name. Otherwise the words that a person
//     has read could be replaced for all callers, or callers would see different versions of one name.
//   - Where gateways share a store, it is the home of what callers and people save, and directories are read only: each gateway reads
//     its own, and a file counts before the store, so nobody who can save replaces an operator's file. A change of a file by one
//     gateway would be one that the others do not have.
//   - In the store each change is an object with the next number, pipelines/NAME/NUMBER: a text, an adoption, a removal. The one that
//     exists first wins, and the other writer looks again, so two changes of one pipeline never mix; no lock and no clock is shared.
//     Objects never change, and a removal stays the newest one, so an old version is never back by itself.
//   - A gateway asks once in two seconds whether there is a new mark, pipelines/.changed/ANY, which a writer leaves behind its change,
//     and lists all objects only then, or after a minute: a writer may have died before its mark. A name or a version that it does not
//     know it looks for at once, at most five times in a second. So an idle gateway costs one short list, however many versions there are.
//   - The newest versions are in memory, so calls go on while the store is down. Saving does not: nobody could tell who was first.
//   - An object that holds no version breaks its pipeline and no other; the version before does not count again, because the object may
//     have been its removal. Bounds count what the gateway knows: with several saving at once there may be as many more as gateways.
package pipelines
