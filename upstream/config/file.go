// Package config reads the files in which people keep the MCP servers they use: in the forms of the clients that wrote
// them, with variables replaced, every mistake at its place, and watched for changes.
package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// MaxFile bounds a configuration, and a file that one names, in bytes.
const MaxFile = 4 << 20

// A Builtin makes the dial function of a server inside this program. The options are the members of its
// configuration that are not common to all servers, as a JSON object; the error names the wrong one.
type Builtin func(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error)

// A File is an [upstream.Source] of servers from a configuration file as MCP clients have them: JSON with comments, the
// servers under "mcpServers" or "servers". It is an [upstream.Watcher] of that file and of those that it names.
type File struct {
	Path string // as the operator gave it; messages show it so

	// Lookup gives the values of environment variables that the file names. Nil: none is set.
	Lookup func(name string) (string, bool)

	// ReadFile reads the file, and those that envFile and ${file:PATH} name. Nil reads regular files of at most 4 MiB, and
	// the file itself from a pipe, too, which is read once.
	ReadFile func(path string) ([]byte, error)

	Builtins   map[string]Builtin // what "builtin" may name
	Proxy      func(*http.Request) (*url.URL, error)
	MaxMessage int // bytes of one message from a server, 0: 64 MiB

	mu   sync.Mutex // guards what follows
	read reads      // of the last time
	pipe []byte     // what came through the pipe that the file is, nil: nothing yet, or it is none
}

var _ upstream.Watcher = (*File)(nil)

// Servers reads the file. All that is wrong in it comes in one error, a line each: file:line: key: message. The
// servers without mistakes are returned all the same.
func (f *File) Servers(ctx context.Context) ([]upstream.Server, error) {
	r := f.parse(ctx)
	var servers []upstream.Server
	for _, e := range r.entries {
		servers = append(servers, e.upstream())
	}
	f.mu.Lock()
	f.read = r.read
	f.mu.Unlock()
	return servers, errors.Join(r.errs...)
}

// parse reads the file into entries and mistakes.
func (f *File) parse(ctx context.Context) *reader {
	r := &reader{file: f, read: reads{}, seen: map[string]int{}}
	data, err := r.note(f.Path, f.itself(ctx))
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("reading the configuration: %w", err))
		return r
	}
	root, err := hujson.Parse(data)
	if err != nil {
		r.errs = append(r.errs, syntaxError(f.Path, err))
		return r
	}
	r.data = data
	r.root(root)
	return r
}

// syntaxError puts the place where it stands in all other mistakes.
func syntaxError(path string, err error) error {
	var line, column int
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	if n, _ := fmt.Sscanf(text, "line %d, column %d: ", &line, &column); n == 2 {
		_, text, _ = strings.Cut(text, ": ")
		return fmt.Errorf("%s:%d:%d: %s", path, line, column, text)
	}
	return fmt.Errorf("%s: %s", path, text)
}

// reads are the files that were read, with what was in them; the sum of one that could not be read is that of its error.
type reads map[string][sha256.Size]byte

// reader reads one file.
type reader struct {
	file    *File
	data    []byte
	inputs  []input
	entries []*entry
	errs    []error
	read    reads
	seen    map[string]int // servers, and the offsets of their names
}

// readFile reads a file and takes note of it.
func (r *reader) readFile(path string) ([]byte, error) {
	return r.note(path, r.file.content(path))
}

func (r *reader) note(path string, c content) ([]byte, error) {
	r.read[path] = sum(c)
	return c.data, c.err
}

// content is what is in a file, or why it cannot be read.
type content struct {
	data []byte
	err  error
}

func sum(c content) [sha256.Size]byte {
	if c.err != nil {
		return sha256.Sum256([]byte("error: " + c.err.Error()))
	}
	return sha256.Sum256(c.data)
}

// itself reads the file. One that is a pipe is read once, and not beyond ctx: what came through it is gone from there.
func (f *File) itself(ctx context.Context) content {
	info, err := os.Stat(f.Path)
	if f.ReadFile != nil || err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return f.content(f.Path)
	}
	f.mu.Lock()
	data := f.pipe
	f.mu.Unlock()
	if data == nil {
		if data, err = namedfile.ReadOnce(ctx, f.Path, MaxFile); err == nil {
			f.mu.Lock()
			f.pipe = data
			f.mu.Unlock()
		}
	}
	return said(f.Path, data, err)
}

// content reads a file that is no pipe.
func (f *File) content(path string) content {
	read := f.ReadFile
	if read == nil {
		read = func(path string) ([]byte, error) { return namedfile.Read(path, MaxFile) }
	}
	data, err := read(path)
	return said(path, data, err)
}

// said is what was read of a file, in words for a person where that failed.
func said(path string, data []byte, err error) content {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no file %s", path)
	case errors.As(err, &pathErr):
		err = fmt.Errorf("%s: %w", path, pathErr.Err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return content{bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err}
}

// where is a place in the file.
func (r *reader) where(offset int) string {
	line := 1 + bytes.Count(r.data[:min(offset, len(r.data))], []byte("\n"))
	return fmt.Sprintf("%s:%d", r.file.Path, line)
}

func (r *reader) fail(offset int, key, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if key != "" {
		msg = key + ": " + msg
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %s", r.where(offset), msg))
}

// serverKeys are the members of a file that hold servers.
var serverKeys = []string{"mcpServers", "servers"}

// root reads the whole file. Clients keep other settings beside the servers, which are none of our business.
func (r *reader) root(root hujson.Value) {
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		r.fail(root.StartOffset, "", `want an object with "mcpServers"`)
		return
	}
	for _, m := range object.Members {
		if nameOf(m) == "inputs" {
			r.readInputs(m)
		}
	}
	found := false
	var near string
	for _, m := range object.Members {
		key := nameOf(m)
		switch {
		case key == serverKeys[0] || key == serverKeys[1]:
			found = true
			r.list(m)
		case near == "":
			if near = nearest.Name(key, serverKeys); near != "" {
				near = fmt.Sprintf("%s: unknown key %q; did you mean %q?", r.where(m.Name.StartOffset), key, near)
			}
		}
	}
	switch {
	case !found && near != "":
		r.errs = append(r.errs, errors.New(near))
	case !found:
		r.fail(root.StartOffset, "", `there is neither "mcpServers" nor "servers"`)
	}
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// list reads the servers under one key.
func (r *reader) list(m hujson.ObjectMember) {
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		r.fail(m.Value.StartOffset, nameOf(m), "want an object with a member per server")
		return
	}
	for _, s := range object.Members {
		name := nameOf(s)
		if first, twice := r.seen[name]; twice {
			r.fail(s.Name.StartOffset, name, "the server is there twice, first at %s; rename one of the two", r.where(first))
			continue
		}
		r.seen[name] = s.Name.StartOffset
		r.server(name, s)
	}
}
