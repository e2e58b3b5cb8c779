package filesystem

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const (
	blockBytes  = 64 << 10 // read at once
	binaryBytes = 8 << 10  // searched for a NUL, which text does not contain
)

const readInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file, relative to the root."},
    "head": {"type": "integer", "minimum": 1, "description": "Only the first lines, this many. Not together with tail."},
    "tail": {"type": "integer", "minimum": 1, "description": "Only the last lines, this many. Not together with head."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

type readArgs struct {
	Path string `json:"path"`
	Head *int   `json:"head"`
	Tail *int   `json:"tail"`
}

func (s *server) readTextFile() tool.Tool {
	return tool.Tool{
		Name: "read_text_file",
		Description: "Reads a text file, or its first (head) or last (tail) lines. The text comes exactly as it is in the file, " +
			"but bytes that are not UTF-8 become U+FFFD, counted in _meta. Binary files are refused.",
		Input:       readInput,
		Annotations: tool.ReadOnly(false),
		Call:        tool.New(s.read),
	}
}

func (s *server) read(ctx context.Context, a readArgs) (*mcp.CallToolResult, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	f, err := s.dir.Open(a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := refuseBinary(f, a.Path); err != nil {
		return nil, err
	}
	src := &contextReader{ctx, f}
	var text []byte
	switch {
	case a.Head != nil:
		text, err = s.head(src, a.Path, *a.Head)
	case a.Tail != nil:
		text, err = s.tail(ctx, f, a.Path, *a.Tail)
	default:
		text, err = s.whole(src, f, a.Path)
	}
	if err != nil {
		return nil, readError(a.Path, err)
	}
	return textResult(text), nil
}

func (a readArgs) check() error {
	if a.Head != nil && a.Tail != nil {
		return workspace.Errorf(workspace.InvalidArgument, "give one of them", "head and tail exclude each other")
	}
	for name, n := range map[string]*int{"head": a.Head, "tail": a.Tail} {
		if n != nil && *n < 1 {
			return workspace.Errorf(workspace.InvalidArgument, "leave it out to read the whole file", "%s is %d, want at least 1", name, *n)
		}
	}
	return nil
}

// refuseBinary returns an error if the beginning of f does not look like text.
func refuseBinary(f *os.File, path string) error {
	size := int64(binaryBytes)
	if info, err := f.Stat(); err == nil && info.Size() > 0 { // not of /proc, whose files seem to be empty
		size = min(size, info.Size())
	}
	start := make([]byte, size)
	n, err := f.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return readError(path, err)
	}
	if i := bytes.IndexByte(start[:n], 0); i >= 0 {
		return workspace.Errorf(workspace.InvalidArgument, "only text files can be read; UTF-16 text has to be converted first",
			"%q is a binary file (a NUL byte at offset %d)", path, i)
	}
	return nil
}

// whole reads all of f.
func (s *server) whole(src io.Reader, f *os.File, path string) ([]byte, error) {
	if info, err := f.Stat(); err == nil && info.Size() > s.maxBytes {
		return nil, s.tooLarge(path, fmt.Sprintf("has %d bytes", info.Size()))
	}
	text, err := io.ReadAll(io.LimitReader(src, s.maxBytes+1))
	if err == nil && int64(len(text)) > s.maxBytes { // it has grown, or has no size, as in /proc
		return nil, s.tooLarge(path, "has more")
	}
	return text, err
}

// head reads the first n lines of src.
func (s *server) head(src io.Reader, path string, n int) ([]byte, error) {
	var text []byte
	r := bufio.NewReaderSize(src, blockBytes)
	for n > 0 {
		part, err := r.ReadSlice('\n')
		if text = append(text, part...); int64(len(text)) > s.maxBytes {
			return nil, s.tooLarge(path, fmt.Sprintf("has more before the end of line %d", strings.Count(string(text), "\n")+1))
		}
		switch err {
		case nil:
			n--
		case bufio.ErrBufferFull: // the line goes on
		case io.EOF:
			return text, nil
		default:
			return nil, err
		}
	}
	return text, nil
}

// tail reads the last n lines of f backwards from its end, so the time does not depend on the file's size.
func (s *server) tail(ctx context.Context, f *os.File, path string, n int) ([]byte, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	start, lines := end, 0
	block := make([]byte, blockBytes)
	for start > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := block[:min(int64(len(block)), start)]
		from := start - int64(len(part))
		if _, err := f.ReadAt(part, from); err != nil {
			return nil, err
		}
		cut := -1 // where the text begins, if in this block
		for i := len(part) - 1; i >= 0 && cut < 0; i-- {
			if part[i] != '\n' || from+int64(i) == end-1 { // the last newline ends the last line
				continue
			}
			if lines++; lines == n {
				cut = i + 1
			}
		}
		if start = from + int64(max(cut, 0)); cut >= 0 {
			break
		}
		if end-start > s.maxBytes {
			break
		}
	}
	if end-start > s.maxBytes {
		return nil, s.tooLarge(path, fmt.Sprintf("has more in its last %d lines", n))
	}
	text := make([]byte, end-start)
	_, err = io.ReadFull(io.NewSectionReader(f, start, end-start), text)
	return text, err
}

func (s *server) tooLarge(path, what string) error {
	return workspace.Errorf(workspace.InvalidArgument, "read a part of it with head or tail", "at most %d bytes are read at once, %q %s", s.maxBytes, path, what)
}

// readError keeps errors that have a kind and gives others one.
func readError(path string, err error) error {
	if _, ok := errors.AsType[*workspace.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var cause error = err
	if p, ok := errors.AsType[*os.PathError](err); ok {
		cause = p.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return workspace.Errorf(workspace.IoError, "read it again", "%q became shorter while it was read", path)
	}
	return workspace.Errorf(workspace.IoError, "", "reading %q: %w", path, cause)
}

// textResult returns text as a result and replaces invalid UTF-8.
func textResult(text []byte) *mcp.CallToolResult {
	valid, bad := texts.Valid(text)
	res := tool.Text(valid)
	if bad > 0 {
		res.Meta = mcp.Meta{"mcsh/text": map[string]any{"replaced": bad}}
	}
	return res
}

// contextReader fails when its context is done.
type contextReader struct {
	ctx context.Context // of the call that uses the reader
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
