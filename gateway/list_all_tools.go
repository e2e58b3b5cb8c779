package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway/rank"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	listWait = 10 * time.Second // for starting servers

	overviewLength    = 8_000  // characters of the answer to a call without arguments
	richLength        = 4_200  // characters of lines with details
	pageLength        = 64_000 // characters of the answer to any other
	instructionLength = 160    // characters of the first sentence of a server about its use
	troubleLength     = 600    // characters of the error of a changed configuration
	bestTools         = 15     // tools for a query without limit

	searchedProperties = 100 // of a tool, compared with a query
	mostUnanswered     = 10  // servers without an answer, named after a query
)

// listCall holds the arguments of list_all_tools.
type listCall struct {
	Query  string `json:"query"`
	Server names  `json:"server"`
	Detail string `json:"detail"`
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

// mostServers bounds the servers that one call names.
const mostServers = 50

// check returns the mistakes in the values of the arguments, and the number of tools before the cursor.
func (c *listCall) check() (wrong wrongCall, skip int) {
	refuse := func(when bool, hint, format string, args ...any) {
		if when {
			wrong = append(wrong, stages.Errorf(stages.InvalidArguments, hint, format, args...))
		}
	}
	_, known := toolForms[cmp.Or(c.Detail, "brief")]
	refuse(!known, "give names, brief or full", "detail is %q", shown(c.Detail))
	refuse(c.Limit < 0, "leave it out to see all", "limit is %d", c.Limit)
	if c.Cursor != "" {
		var err error
		skip, err = strconv.Atoi(c.Cursor)
		refuse(err != nil || skip < 0, "give the cursor of the last answer", "cursor is %q", shown(c.Cursor))
	}
	refuse(len(c.Server) > mostServers, fmt.Sprintf("name at most %d, or leave server out to see all", mostServers), "server has %d names", len(c.Server))
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
	l := toolList{listings: g.saved(ctx, req.Extra).Catalog(ctx, g.o.Upstream.Catalog, call.Server...), most: min(pageLength, g.o.MaxOutput)}
	head := g.configTrouble(ctx) + g.exposedTrouble(ctx)
	if len(l.listings) == 0 && upstream.ViewOf(ctx) != nil {
		return textResult(head + noServers), nil
	}
	if call.Query == "" && call.Server == nil && call.Detail == "" && call.Limit == 0 && call.Cursor == "" {
		l.most = min(overviewLength, g.o.MaxOutput) - utf8.RuneCountInString(head)
		return textResult(head + l.overview(ctx)), nil
	}
	l.most -= utf8.RuneCountInString(head)
	return textResult(head + l.page(ctx, call, skip)), nil
}

// noServers is the list of a caller whose groups have no servers.
const noServers = "There are no MCP servers for you here; the operator of this gateway says which groups you may use. Command stages work.\n"

// configTrouble returns a warning if the latest configuration is not in use.
func (g *Gateway) configTrouble(ctx context.Context) string {
	err := g.o.Upstream.SourceError()
	if err == nil {
		return ""
	}
	const trouble = "note: the configuration has changed and is wrong; the one before is in use"
	if upstream.ViewOf(ctx) != nil { // the error may be about servers of others
		return trouble + ": the operator of this gateway can see why\n"
	}
	return fmt.Sprintf(trouble+": %s\n", texts.Plain(shownUpTo(err.Error(), troubleLength), false))
}

// A toolList lists the tools of servers within a number of characters.
type toolList struct {
	listings []upstream.Listing
	most     int
}

// A ListedTool is a tool with the server that it belongs to.
type ListedTool struct {
	*upstream.Listing
	Tool *upstream.CatalogTool
}

// Search returns the tools that fit a query, best first, as list_all_tools finds them.
func Search(listings []upstream.Listing, query string) []ListedTool {
	return (&toolList{listings: listings}).ranked(query)
}

// tools returns all tools, by server.
func (l *toolList) tools() []ListedTool {
	var all []ListedTool
	for i := range l.listings {
		for j := range l.listings[i].Tools {
			all = append(all, ListedTool{&l.listings[i], &l.listings[i].Tools[j]})
		}
	}
	return all
}

// ranked returns the tools that fit a query, best first.
func (l *toolList) ranked(query string) []ListedTool {
	all := l.tools()
	docs := make([]rank.Document, len(all))
	for i, t := range all {
		docs[i] = document(t)
	}
	var best []ListedTool
	for _, i := range rank.Search(query, docs, len(docs)) {
		best = append(best, all[i])
	}
	return best
}

// document returns what is searched of a tool.
func document(t ListedTool) rank.Document {
	return t.Tool.Memo.Get(func() any {
		first, rest := firstSentence(t.Tool.Description)
		properties := t.Tool.Tool.Input.Properties
		return rank.Prepare(
			rank.Field{Text: t.Tool.Name, Weight: 4},
			rank.Field{Text: t.Server, Weight: 2},
			rank.Field{Text: t.Tool.Title, Weight: 2},
			rank.Field{Text: first, Weight: 2},
			rank.Field{Text: rest, Weight: 0.5},
			rank.Field{Text: strings.Join(properties[:min(len(properties), searchedProperties)], " "), Weight: 0.3},
		)
	}).(rank.Document)
}

// page lists the tools of a call that fit, and says how to get the others.
func (l *toolList) page(ctx context.Context, call listCall, skip int) string {
	var tools []ListedTool
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
	if call.Detail == "" {
		w.form.write = richest(tools, w.flat, min(w.left, richLength)).form
	}
	switch {
	case w.flat:
		w.put(l.unanswered())
	case skip == 0:
		l.toolless(&w)
	}
	n := w.write(ctx, tools)
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

// toolless lists the servers without tools.
func (l *toolList) toolless(w *listWriter) {
	for i := range l.listings {
		if s := &l.listings[i]; len(s.Tools) == 0 {
			w.put(serverHead(s))
		}
	}
}

// unanswered names the servers that do not answer, in one line: they may have the wanted tool.
func (l *toolList) unanswered() string {
	var names []string
	for i := range l.listings {
		if s := &l.listings[i]; s.Err != nil {
			names = append(names, fmt.Sprintf("%s (%s: %s)", texts.Plain(s.Server, false), s.Status, texts.Plain(shownUpTo(s.Err.Error(), noteLength), false)))
		}
	}
	more := ""
	if len(names) > mostUnanswered {
		names, more = names[:mostUnanswered], fmt.Sprintf("; and %d more", len(names)-mostUnanswered)
	}
	if names == nil {
		return ""
	}
	return "note: no answer from " + strings.Join(names, "; ") + more + "\n"
}

const (
	tailLength    = 300 // characters reserved for the last lines
	unknownShapes = "Where there is no ->, what the tool returns is not known yet: put a preview into the pipeline.\n"
)

// A listWriter writes tools until the characters run out.
type listWriter struct {
	b       strings.Builder
	form    toolForm
	flat    bool // each line names its server
	left    int
	server  *upstream.Listing
	unknown bool // some tool has no known shape
}

// put writes text if it fits.
func (w *listWriter) put(text string) bool {
	size := utf8.RuneCountInString(text)
	if size > w.left {
		return false
	}
	w.left -= size
	w.b.WriteString(text)
	return true
}

// tail writes the last lines, in the reserved characters.
func (w *listWriter) tail(text string) { w.b.WriteString(text) }

// write writes tools in their form and returns how many fit. It always writes the first, cut if necessary, so that a next
// page makes progress.
func (w *listWriter) write(ctx context.Context, tools []ListedTool) int {
	for i, t := range tools {
		text := w.form.write(ctx, t, w.flat)
		if !w.flat && t.Listing != w.server {
			text = serverHead(t.Listing) + text
			if w.b.Len() > 0 {
				text = w.form.gap + text
			}
		}
		if i == 0 {
			text = shorten(text, max(w.left, smallestPart))
		}
		if !w.put(text) && i > 0 {
			w.b.WriteString(w.form.end)
			return i
		}
		w.server = t.Listing
		w.unknown = w.unknown || w.form.shapes && !t.Tool.Result.Known()
	}
	if len(tools) > 0 {
		w.b.WriteString(w.form.end)
	}
	return len(tools)
}

const askForMore = "Names only above: ask again with server (one or several) or query (words) to see parameters and results.\n"

// overview shows a line per tool if all fit; else the names of all tools, and lines for the smallest servers while they fit.
func (l *toolList) overview(ctx context.Context) string {
	lines, names := make([]string, len(l.listings)), make([]string, len(l.listings))
	room := l.most - utf8.RuneCountInString(unknownShapes)
	r := richest(l.tools(), false, min(room, richLength))
	order, end := make([]int, len(l.listings)), ""
	for i := range l.listings {
		s := &l.listings[i]
		var brief, short strings.Builder
		for j := range s.Tools {
			t := ListedTool{s, &s.Tools[j]}
			brief.WriteString(r.line(t, false))
			short.WriteString(nameForm(ctx, t, false))
			if !t.Tool.Result.Known() {
				end = unknownShapes
			}
		}
		order[i], lines[i], names[i] = i, serverHead(s)+brief.String(), plainHead(s)
		if len(s.Tools) > 0 {
			names[i] += strings.TrimRight(short.String(), " ") + "\n"
		}
	}
	if all := strings.Join(lines, ""); utf8.RuneCountInString(all) <= room {
		return prefix(all+end, l.most)
	}
	room -= utf8.RuneCountInString(askForMore)
	size := utf8.RuneCountInString(strings.Join(names, ""))
	if size > room {
		l.shortenNames(names, room)
		return prefix(strings.Join(names, "")+askForMore, l.most)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(lines[a]), len(lines[b])) })
	for _, i := range order {
		size += utf8.RuneCountInString(lines[i]) - utf8.RuneCountInString(names[i])
		if size > room {
			break
		}
		names[i] = lines[i]
	}
	return prefix(strings.Join(names, "")+askForMore+end, l.most)
}

// shortenNames gives each server an equal part of the characters, and counts the names that do not fit.
func (l *toolList) shortenNames(names []string, room int) {
	for i, text := range names {
		part := max(room/(len(names)-i), 0)
		if utf8.RuneCountInString(text) > part {
			more := fmt.Sprintf(" … %d tools\n", len(l.listings[i].Tools))
			keep := prefix(text, max(0, part-utf8.RuneCountInString(more)))
			if at := strings.LastIndexByte(keep, ' '); at > 0 && strings.Contains(keep, "\n") {
				keep = keep[:at]
			}
			names[i] = prefix(strings.TrimRight(keep, "\n")+more, part)
		}
		room -= utf8.RuneCountInString(names[i])
	}
}
