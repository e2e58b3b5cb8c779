package filesystem

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

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
	return content(data)
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
