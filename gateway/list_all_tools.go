package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway/rank"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	listWait = 10 * time.Second // how long list_all_tools waits for servers that are still starting

	overviewLength = 8_000  // characters of the answer to a call without arguments
	pageLength     = 64_000 // characters of the answer to any other
	troubleLength  = 600    // characters of what is wrong with a changed configuration
	bestTools      = 15     // tools that a query without limit finds
)

// listCall are the arguments of list_all_tools.
type listCall struct {
	Query  string `json:"query"`
	Server names  `json:"server"`
	Detail string `json:"detail"`
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

// check returns the mistakes in the values of the arguments, and the number of tools that the cursor leaves out.
func (c *listCall) check() (wrong wrongCall, skip int) {
	if _, ok := toolForms[cmp.Or(c.Detail, "brief")]; !ok {
		wrong = append(wrong, stages.Errorf(stages.InvalidArguments, "give names, brief or full", "detail is %q", shown(c.Detail)))
	}
	if c.Limit < 0 {
		wrong = append(wrong, stages.Errorf(stages.InvalidArguments, "leave it out to see all", "limit is %d", c.Limit))
	}
	if c.Cursor != "" {
		var err error
		if skip, err = strconv.Atoi(c.Cursor); err != nil || skip < 0 {
			wrong = append(wrong, stages.Errorf(stages.InvalidArguments, "give the cursor of the last answer", "cursor is %q", shown(c.Cursor)))
		}
	}
	return wrong, skip
}

func (g *Gateway) listAllTools(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var call listCall
	if wrong := decode(req, &call); wrong != nil {
		return nil, wrong
	}
	wrong, skip := call.check()
	if wrong != nil {
		return nil, wrong
	}
	if g.o.Upstream == nil {
		return textResult("There are no MCP servers here. Command stages work: list_available_shell_commands.\n"), nil
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	l := toolList{listings: g.o.Upstream.Catalog(ctx, call.Server...), most: min(pageLength, g.o.MaxOutput)}
	head := g.configTrouble()
	if call.Query == "" && call.Server == nil && call.Detail == "" && call.Limit == 0 && call.Cursor == "" {
		l.most = min(overviewLength, g.o.MaxOutput) - utf8.RuneCountInString(head)
		return textResult(head + l.overview()), nil
	}
	l.most -= utf8.RuneCountInString(head)
	return textResult(head + l.page(call, skip)), nil
}

// configTrouble says that the configuration in use is not the latest, if that is so.
func (g *Gateway) configTrouble() string {
	err := g.o.Upstream.Trouble()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("note: the configuration has changed and is wrong; the one before is in use: %s\n", Plain(shownUpTo(err.Error(), troubleLength), false))
}

// A toolList writes what servers offer, in at most so many characters.
type toolList struct {
	listings []upstream.Listing
	most     int
}

// listedTool is a tool with the server that it belongs to.
type listedTool struct {
	server *upstream.Listing
	tool   *upstream.CatalogTool
}

// tools are all tools, by server.
func (l *toolList) tools() []listedTool {
	var all []listedTool
	for i := range l.listings {
		for j := range l.listings[i].Tools {
			all = append(all, listedTool{&l.listings[i], &l.listings[i].Tools[j]})
		}
	}
	return all
}

// ranked are the tools that fit a query, best first.
func (l *toolList) ranked(query string) []listedTool {
	all := l.tools()
	docs := make([][]rank.Field, len(all))
	for i, t := range all {
		docs[i] = []rank.Field{
			{Text: t.tool.Name, Weight: 3},
			{Text: t.server.Server, Weight: 2},
			{Text: t.tool.Title, Weight: 2},
			{Text: t.tool.Description, Weight: 1},
			{Text: strings.Join(t.tool.Tool.Input.Properties, " "), Weight: 1},
		}
	}
	var best []listedTool
	for _, i := range rank.Search(query, docs, len(docs)) {
		best = append(best, all[i])
	}
	return best
}

// page writes the tools that a call asks for, as many as there is room for, and how to get the others.
func (l *toolList) page(call listCall, skip int) string {
	var tools []listedTool
	if call.Query == "" {
		tools = l.tools()
	} else {
		tools = l.ranked(call.Query)
		call.Limit = cmp.Or(call.Limit, bestTools)
	}
	all := len(tools)
	tools = tools[min(skip, all):]
	if call.Limit > 0 {
		tools = tools[:min(call.Limit, len(tools))]
	}
	w := listWriter{form: toolForms[cmp.Or(call.Detail, "brief")], flat: call.Query != "", left: l.most - tailLength}
	if skip == 0 || w.flat {
		l.troubles(&w, call.Query != "")
	}
	n := w.write(tools)
	if end := skip + n; n > 0 && end < all {
		w.tail(fmt.Sprintf("%d of %d tools; for more: cursor %q.\n", end, all, strconv.Itoa(end)))
	}
	if all == 0 && call.Query != "" {
		w.tail(fmt.Sprintf("No tool has a word of %q. Try other words, or none to see all.\n", shown(call.Query)))
	}
	if w.unknown {
		w.tail(unknownShapes)
	}
	return w.b.String()
}

// troubles writes the servers that have no tools to show; where only trouble counts, not those that merely have none.
func (l *toolList) troubles(w *listWriter, only bool) {
	for i := range l.listings {
		if s := &l.listings[i]; len(s.Tools) == 0 && (!only || s.Err != nil) {
			w.put(serverHead(s))
		}
	}
}

const (
	tailLength    = 300 // characters kept for what stands at the end
	unknownShapes = "Where there is no ->, what the tool returns is not known yet: put a preview into the pipeline.\n"
)

// A listWriter writes tools as long as there is room for them.
type listWriter struct {
	b       strings.Builder
	form    toolForm
	flat    bool // every line names its server
	left    int
	server  *upstream.Listing
	unknown bool // the shape of what some tool returns was to be shown, and is not known
}

// put writes text if there is room for it.
func (w *listWriter) put(text string) bool {
	size := utf8.RuneCountInString(text)
	if size > w.left {
		return false
	}
	w.left -= size
	w.b.WriteString(text)
	return true
}

// tail writes what stands at the end, for which room was kept.
func (w *listWriter) tail(text string) { w.b.WriteString(text) }

// write writes tools in their form and returns how many there was room for. The first is written in any case, as far as
// it goes: who asks for the rest must not get the same again.
func (w *listWriter) write(tools []listedTool) int {
	for i, t := range tools {
		text := w.form.write(t, w.flat)
		if !w.flat && t.server != w.server {
			text = w.form.separate(w.b.Len() > 0) + serverHead(t.server) + text
		}
		if i == 0 {
			text = shorten(text, max(w.left, smallestPart))
		}
		if !w.put(text) && i > 0 {
			w.b.WriteString(w.form.end)
			return i
		}
		w.server = t.server
		w.unknown = w.unknown || w.form.shapes && !t.tool.Result.Known()
	}
	if len(tools) > 0 {
		w.b.WriteString(w.form.end)
	}
	return len(tools)
}
