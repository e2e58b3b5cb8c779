package filesystem

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const maxPaths = 1000 // of one read_multiple_files

const mediaOutput = `{"type": "object", "properties": {"content": {"type": "array", "items": {"type": "object"}}}, "required": ["content"]}`

// readers are the tools that read files.
func (r *reference) readers() []tool.Tool {
	text := input(pathArg, property{"head?", `{"type": "integer", "description": "Only the first lines, this many."}`}, property{"tail?", `{"type": "integer", "description": "Only the last lines, this many."}`})
	return []tool.Tool{
		{Name: "read_file", Description: "Reads a file as text. Deprecated: use read_text_file.", Input: text, Output: contentOutput, Annotations: tool.ReadOnly(false), Call: tool.New(r.readText)},
		{Name: "read_text_file", Description: "Reads a file as text, or its first (head) or last (tail) lines.", Input: text, Output: contentOutput, Annotations: tool.ReadOnly(false), Call: tool.New(r.readText)},
		{
			Name: "read_media_file", Description: "Reads an image or audio file, or any other as an embedded resource, in base64.", Output: mediaOutput,
			Input: input(pathArg), Annotations: tool.ReadOnly(false), Call: tool.New(r.readMedia),
		},
		{
			Name: "read_multiple_files", Description: "Reads files as text, each after its path. A file that cannot be read is named with its error.", Output: contentOutput,
			Input:       input(property{"paths", `{"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1000, "description": "Paths in allowed directories."}`}),
			Annotations: tool.ReadOnly(false), Call: tool.New(r.readMany),
		},
	}
}

// readText returns lines without the last newline, as the npm server does.
func (r *reference) readText(ctx context.Context, a readArgs) (*mcp.CallToolResult, error) {
	head, tail := lines(a.Head), lines(a.Tail)
	if head > 0 && tail > 0 {
		return nil, workspace.Errorf(workspace.InvalidArgument, "give one of them", "head and tail exclude each other")
	}
	if head < 0 || tail < 0 {
		return nil, workspace.Errorf(workspace.InvalidArgument, "", "head and tail are numbers of lines, want at least 1")
	}
	t, err := r.find(a.Path)
	if err != nil {
		return nil, err
	}
	data, err := t.bytes(ctx, head, tail)
	if err != nil {
		return nil, err
	}
	return content(string(data))
}

func lines(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// bytes reads a file, or the first or last lines of it.
func (t target) bytes(ctx context.Context, head, tail int) ([]byte, error) {
	f, err := t.dir.Open(t.rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src := &contextReader{ctx, f}
	var data []byte
	switch {
	case head > 0:
		data, err = t.head(src, t.rel, head)
		data = bytes.TrimSuffix(data, []byte("\n"))
	case tail > 0:
		last := make([]byte, 1)
		if info, serr := f.Stat(); serr == nil && info.Size() > 0 {
			_, err = f.ReadAt(last, info.Size()-1)
		}
		if last[0] == '\n' {
			tail-- // what follows the last newline counts as a line there
		}
		if err == nil && tail > 0 {
			data, err = t.tail(ctx, f, t.rel, tail)
		}
		data = []byte(unixLines(string(data)))
	default:
		data, err = t.whole(src, f, t.rel)
	}
	if err != nil {
		return nil, readError(t.rel, err)
	}
	return data, nil
}

// mediaTypes are those of read_media_file, by the end of the name.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".bmp": "image/bmp", ".svg": "image/svg+xml",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".flac": "audio/flac",
}

func (r *reference) readMedia(ctx context.Context, a pathArgs) (*mcp.CallToolResult, error) {
	t, err := r.find(a.Path)
	if err != nil {
		return nil, err
	}
	data, err := t.bytes(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	var block mcp.Content
	switch kind := cmp.Or(mediaTypes[strings.ToLower(path.Ext(t.rel))], "application/octet-stream"); {
	case strings.HasPrefix(kind, "image/"):
		block = &mcp.ImageContent{Data: data, MIMEType: kind}
	case strings.HasPrefix(kind, "audio/"):
		block = &mcp.AudioContent{Data: data, MIMEType: kind}
	default:
		address := url.URL{Scheme: "file", Path: t.full()}
		block = &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: address.String(), MIMEType: kind, Blob: data}}
	}
	structured, err := tool.Encode(map[string]any{"content": []mcp.Content{block}})
	return &mcp.CallToolResult{Content: []mcp.Content{block}, StructuredContent: structured}, err
}

type manyArgs struct {
	Paths []string `json:"paths"`
}

func (r *reference) readMany(ctx context.Context, a manyArgs) (*mcp.CallToolResult, error) {
	if len(a.Paths) == 0 || len(a.Paths) > maxPaths {
		return nil, workspace.Errorf(workspace.InvalidArgument, "", "there are %d paths, want 1 to %d", len(a.Paths), maxPaths)
	}
	var parts []string
	size := int64(0)
	for _, name := range a.Paths {
		var data []byte
		t, err := r.find(name)
		if err == nil {
			data, err = t.bytes(ctx, 0, 0)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			parts = append(parts, fmt.Sprintf("%s: Error - %v", name, err))
			continue
		}
		if size += int64(len(data)); size > r.maxBytes {
			return nil, workspace.Errorf(workspace.InvalidArgument, "read fewer files at once", "the files have more than %d bytes", r.maxBytes)
		}
		parts = append(parts, name+":\n"+string(data)+"\n")
	}
	return content(strings.Join(parts, "\n---\n"))
}

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
	return t.dir.ReadDir(ctx, t.rel, true)
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

// A branch is a node of the tree of the npm server.
type branch struct {
	Name     string     `json:"name"`
	Type     string     `json:"type"`
	Children *[]*branch `json:"children,omitempty"`
}

func (r *reference) tree(ctx context.Context, a excludeArgs) (*mcp.CallToolResult, error) {
	top := &branch{Children: &[]*branch{}}
	open := []*branch{top}
	err := r.walk(ctx, a, true, func(_ target, _ string, e workspace.Entry) {
		b := &branch{Name: e.Name, Type: "file"}
		in := open[len(open)-1]
		*in.Children = append(*in.Children, b)
		if e.Type == workspace.Directory {
			b.Type, b.Children = "directory", &[]*branch{}
			open = append(open, b)
		}
	}, func() { open = open[:len(open)-1] })
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(top.Children); err != nil {
		return nil, err
	}
	return content(strings.TrimSuffix(text.String(), "\n"))
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
