package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// checkServers reads the configuration, starts all servers at once, and describes each.
func checkServers(ctx context.Context, d *diagnosis) {
	pool, err := d.program.openUpstream(ctx, d.settings)
	if err != nil {
		d.wrongConfig(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultRun)
	defer cancel()
	defer d.program.show(pool.Statuses).stop()
	names := pool.Servers(ctx)
	found, took := make([]upstream.Listing, len(names)), make([]time.Duration, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			begun := time.Now()
			found[i] = pool.Catalog(ctx, name)[0]
			took[i] = time.Since(begun)
		})
	}
	wg.Wait()
	for i, l := range found {
		d.describeServer(l, took[i])
	}
	d.describeGroups(ctx, pool)
	d.describePipelines(ctx, pool)
	if len(names) == 0 {
		d.add(statusNote, "name some with --config FILE; mcsh import takes those of other clients", "there are no servers")
	}
	if err := pool.Close(); err != nil {
		d.add(statusWarning, "", "closing the servers: %v", err)
	}
}

// wrongConfig adds a finding for each mistake.
func (d *diagnosis) wrongConfig(err error) {
	for line := range strings.Lines(err.Error()) {
		d.add(statusFailed, "", "%s", strings.TrimSpace(line))
	}
	if f, ok := errors.AsType[*failure](err); ok {
		d.findings[len(d.findings)-1].Hint = f.hint
	}
}

func (d *diagnosis) describeServer(l upstream.Listing, took time.Duration) {
	switch e, ok := errors.AsType[*stages.Error](l.Err); {
	case l.IsGateway():
		d.add(statusOK, "", "%s: a gateway such as this one; it is left out and not counted as a server", l.Server)
		return
	case ok:
		d.add(statusFailed, e.Hint, "%s", e.Msg)
		return
	case l.Err != nil:
		d.add(statusFailed, "", "%v", l.Err)
		return
	}
	reading := 0
	for _, t := range l.Tools {
		if t.ReadOnly {
			reading++
		}
	}
	text := fmt.Sprintf("%s: %s, %d of them only read", l.Server, texts.Count(len(l.Tools), "tool"), reading)
	if l.Refused > 0 {
		text += fmt.Sprintf("; %d not offered", l.Refused)
	}
	if l.Protocol != "" {
		text += "; protocol " + l.Protocol
	}
	level := statusOK
	if l.Status == upstream.StatusDegraded {
		level = statusWarning
	}
	d.add(level, "", "%s; %.1f s", text, took.Seconds())
	if l.Note != "" {
		d.add(statusNote, "", "%s: %s", l.Server, l.Note)
	}
	d.proposeReadOnly(l.Server, l.Tools)
}

// readingWords begin the descriptions of read-only tools, as stems.
var readingWords = []string{
	"calculate", "check", "compare", "convert", "display", "explain", "inspect", "look", "obtain", "print", "provide",
	"retrieve", "return", "summarize", "view",
}

// changingWords mark the names and descriptions of tools with effects, as stems.
var changingWords = []string{
	"add", "append", "apply", "approve", "assign", "cancel", "checkout", "clear", "click", "close", "create", "delete", "deploy",
	"disable", "drop", "edit", "enable", "execute", "fill", "import", "insert", "install", "invite", "kill", "lock", "mark",
	"merge", "modify", "move", "mutate", "open", "overwrite", "patch", "pay", "post", "publish", "purge", "push", "put",
	"refund", "register", "remove", "rename", "replace", "reset", "restart", "restore", "revert", "revoke", "run", "save", "send",
	"set", "start", "stop", "store", "submit", "subscribe", "switch", "sync", "toggle", "transfer", "trigger", "type",
	"unlock", "update", "upload", "upsert", "write",
}

// readOnlyTools returns the tools without annotations that seem read-only, and the number of all without annotations.
func readOnlyTools(tools []upstream.CatalogTool) (names []string, unannotated int) {
	for _, t := range tools {
		if t.Tool.Annotated {
			continue
		}
		unannotated++
		if seemsReadOnly(t.Name, t.Description) {
			names = append(names, cmp.Or(t.Original, t.Name))
		}
	}
	return names, unannotated
}

// seemsReadOnly judges a tool by the verb of its name, or else by the first verb of its description. A word of change in
// the name or the first sentence decides against it.
func seemsReadOnly(name, description string) bool {
	words := wordsOf(firstSentence(description))
	switch {
	case slices.ContainsFunc(wordsOf(name), isChanging):
		return false
	case stages.NamedReading(name):
		return true
	}
	return len(words) > 0 && !slices.ContainsFunc(words, isChanging) &&
		slices.ContainsFunc(stems(words[0]), func(stem string) bool { return stages.NamedReading(stem) || slices.Contains(readingWords, stem) })
}

// nameParts matches the words of an identifier: getIssue, git_log, HTTPServer.
var nameParts = lazy.Regexp(`[A-Z]+(?:[a-z]+)?|[a-z]+`)

func wordsOf(text string) []string {
	return convert(nameParts().FindAllString(text, -1), strings.ToLower)
}

func isChanging(word string) bool {
	return slices.ContainsFunc(stems(word), func(stem string) bool { return slices.Contains(changingWords, stem) })
}

// stems returns the possible stems of a verb: creates, fetches, updated, setting.
func stems(word string) []string {
	list := []string{word}
	for _, ending := range []string{"s", "es", "d", "ed", "ing"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) > 2 {
			list = append(list, stem)
			if ending == "ing" {
				list = append(list, stem+"e")
			}
			if n := len(stem); stem[n-1] == stem[n-2] {
				list = append(list, stem[:n-1])
			}
		}
	}
	return list
}

// proposeReadOnly proposes a readOnly list for a server without annotations.
func (d *diagnosis) proposeReadOnly(server string, tools []upstream.CatalogTool) {
	names, unannotated := readOnlyTools(tools)
	if len(names) == 0 {
		return
	}
	d.add(statusNote, fmt.Sprintf(`if these only read, as their names and descriptions suggest, add "readOnly": %s to the server`, texts.JSON(names)),
		"%s: %s without annotations count as tools that may change something: a dry run stops before them", server, texts.Count(unannotated, "tool"))
}
