package observe

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	maxServers = 256     // that have a label of their own: a source of servers may give ever new names
	maxName    = 100     // bytes of a name
	others     = "other" // stands for everything that has no label of its own
)

// names bounds how many values a label has.
type names struct {
	max int

	mu    sync.RWMutex
	known map[string]string // the label of a name; guarded by mu
}

func newNames(max int) *names { return &names{max: max, known: map[string]string{}} }

// label is the value for a name: the first so many have one of their own.
func (n *names) label(name string) string {
	n.mu.RLock()
	label, ok := n.known[name]
	n.mu.RUnlock()
	if ok {
		return label
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= n.max {
		return others
	}
	label = clip(name)
	n.known[name] = label
	return label
}

// clip is a name as it may be told: servers choose those of tools.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) <= maxName {
		return name
	}
	name = name[:maxName]
	for !utf8.ValidString(name) {
		name = name[:len(name)-1]
	}
	return name
}

// codeOK is the code of what succeeded.
const codeOK = "OK"

// knownCodes are the values of the label code.
var knownCodes = map[stages.Code]bool{
	stages.InvalidPipeline: true, stages.UnknownServer: true, stages.UnknownTool: true, stages.UnknownRun: true,
	stages.InvalidArguments: true, stages.DisallowedCommand: true, stages.DisallowedArgument: true, stages.ToolError: true,
	stages.ServerUnavailable: true, stages.CommandFailed: true, stages.Timeout: true, stages.LimitExceeded: true,
	stages.Denied: true, stages.Cancelled: true, stages.Internal: true,
}

// limitNames are the values of the label limit.
var limitNames = map[string]bool{
	"attempt": true, "call": true, "caller-runs": true, "calls": true, "command": true, "held": true, "hops": true, "input": true, "item": true,
	"items": true, "nesting": true, "result": true, "run": true, "runs": true, "shared": true, "spool": true, "stages": true,
	"timeout": true, "waiting": true,
}

// named finds the limit that a message names.
var named = regexp.MustCompile(`\(limit ([a-z-]+)[;)]`)

// limitOf is the limit that ended something, or nothing.
func limitOf(e *stages.Error) string {
	if e == nil || e.Code != stages.LimitExceeded && e.Code != stages.Timeout {
		return ""
	}
	m := named.FindStringSubmatch(e.Msg)
	switch {
	case m != nil && limitNames[m[1]]:
		return m[1]
	case m == nil && e.Code == stages.Timeout: // of the stage's own choice
		return ""
	}
	return others
}

// kindOf is the type of the stage with a label such as "tool shop/list_orders".
func (w *Watch) kindOf(label string) string {
	word, _, _ := strings.Cut(label, " ")
	if w.kinds[word] {
		return word
	}
	return others
}
