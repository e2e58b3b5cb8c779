package stdio

import (
	"fmt"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// The output of npm, of servers and of Node.js itself when the Node.js that runs a server is too old.
var (
	refusedEngine = lazy.Regexp(`npm (?:error|ERR!)[^\n]*EBADENGINE|EBADENGINE(?s:.*)\nNode\.js v\d`) // a warning alone does no harm
	refusedNode   = lazy.Regexp(`(?i)does not support node(?:\.js)? v?\d|(?:requires|needs|upgrade to) (?:at least )?node(?:\.js)?\b`)
	crashedNode   = lazy.Regexp(`(?m:SyntaxError: Unexpected (?:token \S+$|identifier|reserved word))|SyntaxError: (?:Invalid regular expression flags|Cannot use import statement|The requested module '[^'\n]*' does not provide an export)` +
		`|ERR_REQUIRE_ESM|ERR_UNKNOWN_BUILTIN_MODULE|No such built-in module` +
		`|ReferenceError: (?:File|CustomEvent|WebSocket|fetch|Headers|Response|ReadableStream|structuredClone|navigator|crypto) is not defined` +
		`|TypeError: (?:\S+\.)?(?:withResolvers|groupBy|toSorted|toReversed|toSpliced|findLast|isSubsetOf|globSync|markAsUncloneable|styleText|fromAsync|getBuiltinModule) is not a function`)

	runningNode = lazy.Regexp(`(?m)^Node\.js (v\d+(?:\.\d+)*)|(?:current: \{ |Actual: [^\n]*)"?node"?: ?['"](v\d+(?:\.\d+)*)|(?i:does not support node(?:\.js)? )(v\d+(?:\.\d+)*)`)
	wantedNode  = lazy.Regexp(`(?:required: \{ |Required: \{)"?node"?: ?['"]([^'"\n]{1,60})['"]`)
)

// oldNode is the hint for a program that ended with the errors of an old Node.js; empty for any other.
func oldNode(stderr string) string {
	if !refusedEngine().MatchString(stderr) && !refusedNode().MatchString(stderr) && !crashedNode().MatchString(stderr) {
		return ""
	}
	running, wants := "the one that runs it", ""
	if m := runningNode().FindStringSubmatch(stderr); m != nil {
		running = m[1] + m[2] + m[3] + ", which runs it"
	}
	if m := wantedNode().FindStringSubmatch(stderr); m != nil {
		wants = fmt.Sprintf(" (it wants %s)", m[1])
	}
	return fmt.Sprintf(`it seems to need a newer Node.js than %s%s: install that, or put its directory first in PATH: "env": {"PATH": "/path/to/node/bin:${PATH}"}`, running, wants)
}
