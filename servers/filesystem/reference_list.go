package filesystem

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// listers are the tools that look at directories.
func (r *reference) listers() []tool.Tool {
	return []tool.Tool{
		{
			Name: "list_directory", Description: "Lists a directory: one line each, [FILE] or [DIR] and the name.", Output: contentOutput,
			Input: input(pathArg), Annotations: tool.ReadOnly(false), Call: tool.New(r.list),
		},
		{
			Name: "list_directory_with_sizes", Description: "Lists a directory with sizes and a summary.", Output: contentOutput,
			Input:       input(pathArg, property{"sortBy?", `{"enum": ["name", "size"], "default": "name", "description": "The order; the largest first."}`}),
			Annotations: tool.ReadOnly(false), Call: tool.New(r.listSizes),
		},
		{
			Name: "directory_tree", Description: "Shows a directory with all that is below it as JSON: name, type, and children of directories.", Output: contentOutput,
			Input: input(pathArg, excludeArg), Annotations: tool.ReadOnly(false), Call: tool.New(r.tree),
		},
		{
			Name: "search_files", Description: "Finds files and directories whose path below path matches a glob, such as **/*.go.", Output: contentOutput,
			Input:       input(pathArg, property{"pattern", `{"type": "string", "description": "A glob: * stays within a directory, ** does not."}`}, excludeArg),
			Annotations: tool.ReadOnly(false), Call: tool.New(r.searchFiles),
		},
		{
			Name: "get_file_info", Description: "Tells size, times, type and permissions of a file or directory.", Output: contentOutput,
			Input: input(pathArg), Annotations: tool.ReadOnly(false), Call: tool.New(r.info),
		},
		{
			Name: "list_allowed_directories", Description: "Lists the directories that paths may be in.", Output: contentOutput,
			Input: input(), Annotations: tool.ReadOnly(false), Call: tool.New(r.allowed),
		},
	}
}

func (r *reference) entries(ctx context.Context, name string) ([]workspace.Info, error) {
	t, err := r.find(name)
	if err != nil {
		return nil, err
	}
	infos, _, err := t.dir.ReadDir(ctx, t.rel, workspace.ListOptions{All: true})
	return infos, err
}

// label is that of an entry: a link counts as a file.
func label(t workspace.Type) string {
	if t == workspace.Directory {
		return labels[t]
	}
	return labels[workspace.File]
}

func (r *reference) list(ctx context.Context, a pathArgs) (*mcp.CallToolResult, error) {
	infos, err := r.entries(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(infos))
	for i, e := range infos {
		names[i] = label(e.Type) + lineName.Replace(e.Name)
	}
	return content(strings.Join(names, "\n"))
}

type sizesArgs struct {
	Path   string `json:"path"`
	SortBy string `json:"sortBy"`
}

func (r *reference) listSizes(ctx context.Context, a sizesArgs) (*mcp.CallToolResult, error) {
	if a.SortBy != "" && a.SortBy != "name" && a.SortBy != "size" {
		return nil, workspace.Errorf(workspace.InvalidArgument, "", "sortBy is %.60q, want name or size", a.SortBy)
	}
	infos, err := r.entries(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	if a.SortBy == "size" {
		slices.SortStableFunc(infos, func(a, b workspace.Info) int { return cmp.Compare(b.Size, a.Size) })
	}
	var text strings.Builder
	files, size := 0, int64(0)
	for _, e := range infos {
		shown := ""
		if e.Type != workspace.Directory {
			files++
			size += e.Size
			shown = fmt.Sprintf("%10s", decimals(e.Size))
		}
		fmt.Fprintf(&text, "%s%-30s %s\n", label(e.Type), lineName.Replace(e.Name), shown)
	}
	fmt.Fprintf(&text, "\nTotal: %d files, %d directories\nCombined size: %s", files, len(infos)-files, decimals(size))
	return content(text.String())
}

// decimals writes a size as the npm server does.
func decimals(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	size, unit := float64(n), 0
	for size >= 1024 && unit < len(units)-1 {
		size /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.2f %s", size, units[unit])
}

type excludeArgs struct {
	Path    string   `json:"path"`
	Exclude []string `json:"excludePatterns"`
}

type globArgs struct {
	Path    string   `json:"path"`
	Pattern string   `json:"pattern"`
	Exclude []string `json:"excludePatterns"`
}

// walk calls enter for each entry below a path that no pattern leaves out, with its path below that, and leave after each
// directory.
func (r *reference) walk(ctx context.Context, a excludeArgs, deep bool, enter func(t target, below string, e workspace.Entry), leave func()) error {
	t, err := r.find(a.Path)
	if err != nil {
		return err
	}
	if len(a.Exclude) > maxExclude {
		return workspace.Errorf(workspace.InvalidArgument, "join some with wildcards", "there are %d patterns, at most %d are taken", len(a.Exclude), maxExclude)
	}
	for _, p := range a.Exclude {
		if err := checkGlob(p); err != nil {
			return err
		}
	}
	below := func(e workspace.Entry) string {
		if t.rel == "." {
			return e.Path
		}
		return strings.TrimPrefix(e.Path, t.rel+"/")
	}
	o := workspace.WalkOptions{All: true, MaxDepth: deepest, Skip: func(e workspace.Entry) bool {
		return slices.ContainsFunc(a.Exclude, func(p string) bool { return excludes(p, below(e), deep) })
	}}
	return t.dir.Walk(ctx, t.rel, o, workspace.Visitor{
		Enter: func(e workspace.Entry) error { enter(t, below(e), e); return nil },
		Leave: func(workspace.Entry, string) { leave() },
	})
}

const (
	maxPattern      = 1000 // bytes of a glob
	maxAlternatives = 10   // commas in a glob: those in braces multiply its cost
)

func checkGlob(pattern string) error {
	if len(pattern) > maxPattern || strings.Count(pattern, ",") > maxAlternatives || !doublestar.ValidatePattern(pattern) {
		return workspace.Errorf(workspace.InvalidArgument, "search several times", "%.100q is not a glob of at most %d bytes and %d commas", pattern, maxPattern, maxAlternatives)
	}
	return nil
}

// excludes reports whether a pattern leaves out a path. Deep, a pattern without a star means that name at any depth.
func excludes(pattern, below string, deep bool) bool {
	if doublestar.MatchUnvalidated(pattern, below) {
		return true
	}
	return deep && !strings.Contains(pattern, "*") && (doublestar.MatchUnvalidated("**/"+pattern, below) || doublestar.MatchUnvalidated("**/"+pattern+"/**", below))
}

func (r *reference) tree(ctx context.Context, a excludeArgs) (*mcp.CallToolResult, error) {
	t := newTreeText()
	t.open("[")
	err := r.walk(ctx, a, true, func(_ target, _ string, e workspace.Entry) {
		t.open("{")
		t.line(`"name": `)
		t.name(e.Name)
		if e.Type == workspace.Directory {
			t.line(`"type": "directory",`)
			t.open(`"children": [`)
			return
		}
		t.line(`"type": "file"`)
		t.close("}")
	}, func() {
		t.close("]")
		t.close("}")
	})
	if err != nil {
		return nil, err
	}
	t.close("]")
	return content(t.text.Bytes()[1:])
}

// treeText is JSON as the npm server indents it, written while the tree is walked: nodes would take longer.
type treeText struct {
	text  bytes.Buffer
	names *json.Encoder // writes to text
	depth int
}

func newTreeText() *treeText {
	t := new(treeText)
	t.names = json.NewEncoder(&t.text)
	t.names.SetEscapeHTML(false)
	return t
}

// margin is the beginning of a line at any depth.
var margin = "\n" + strings.Repeat("  ", 2*deepest+2)

func (t *treeText) line(s string) {
	t.text.WriteString(margin[:1+2*t.depth])
	t.text.WriteString(s)
}

// name writes a name and a comma.
func (t *treeText) name(s string) {
	if !strings.ContainsFunc(s, special) {
		t.text.WriteString(`"` + s + `",`)
		return
	}
	if err := t.names.Encode(s); err != nil {
		panic("mcsh: internal error: the name of a file: " + err.Error())
	}
	t.text.Bytes()[t.text.Len()-1] = ',' // in place of a newline
}

// special reports whether JSON may escape a character.
func special(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }

// last is the last byte.
func (t *treeText) last() byte { return t.text.Bytes()[t.text.Len()-1] }

// open begins an object or a list, after a comma if another is before it.
func (t *treeText) open(s string) {
	if t.text.Len() > 0 && t.last() == '}' {
		t.text.WriteByte(',')
	}
	t.line(s)
	t.depth++
}

// close ends the innermost one; an empty one stays on its line.
func (t *treeText) close(s string) {
	t.depth--
	if t.last() == '[' {
		t.text.WriteString(s)
		return
	}
	t.line(s)
}

func (r *reference) searchFiles(ctx context.Context, a globArgs) (*mcp.CallToolResult, error) {
	if err := checkGlob(a.Pattern); err != nil {
		return nil, err
	}
	var found []string
	err := r.walk(ctx, excludeArgs{a.Path, a.Exclude}, false, func(t target, below string, e workspace.Entry) {
		if doublestar.MatchUnvalidated(a.Pattern, below) {
			found = append(found, lineName.Replace(target{t.server, e.Path}.full()))
		}
	}, func() {})
	if err != nil {
		return nil, err
	}
	return content(cmp.Or(strings.Join(found, "\n"), "No matches found"))
}

func (r *reference) info(_ context.Context, a pathArgs) (*mcp.CallToolResult, error) {
	t, err := r.find(a.Path)
	if err != nil {
		return nil, err
	}
	info, err := t.dir.Stat(t.rel)
	if err != nil {
		return nil, err
	}
	// Go knows one time of a file on all systems; it stands for the others.
	date := info.ModTime().Format("Mon Jan 02 2006 15:04:05 GMT-0700 (MST)")
	return content(fmt.Sprintf("size: %d\ncreated: %s\nmodified: %s\naccessed: %s\nisDirectory: %t\nisFile: %t\npermissions: %03o",
		info.Size(), date, date, date, info.IsDir(), info.Mode().IsRegular(), info.Mode().Perm()))
}

func (r *reference) allowed(context.Context, struct{}) (*mcp.CallToolResult, error) {
	var text strings.Builder
	text.WriteString("Allowed directories:")
	for _, s := range r.roots {
		text.WriteString("\n" + s.dir.Root())
	}
	return content(text.String())
}
