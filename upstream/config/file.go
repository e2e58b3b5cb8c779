// Package config reads the files in which people keep the MCP servers they use: in the forms of all common clients, with
// variables replaced, each mistake reported with its line, and watched for changes.
//
// # Decisions
//
//   - Files are read twice a second, and content decides: editors, Kubernetes and checkouts each replace files in their
//     own way, and network file systems report no changes. A changed file counts when it has stayed the same for 200 ms.
package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/following"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// MaxFile bounds a configuration, and a file that it names, in bytes.
const MaxFile = 4 << 20

// A Builtin makes the dial function of a server inside this program. The options are the members of its configuration
// that are not common to all servers, as a JSON object; the error names the wrong one.
type Builtin func(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error)

// A File is an [upstream.Source] of servers from a configuration file as MCP clients write it: JSON with comments, the
// servers under "mcpServers" or "servers". It is an [upstream.Watcher] of that file and of those that it names.
type File struct {
	Path string // as the operator gave it, for messages

	// Lookup gives the values of environment variables that the file names. Nil: none is set.
	Lookup func(name string) (string, bool)

	// ReadFile reads the file, and those that envFile and ${file:PATH} name. Nil reads regular files of at most 4 MiB;
	// the file itself may also be a pipe, which is read once.
	ReadFile func(path string) ([]byte, error)

	Builtins map[string]Builtin  // what "builtin" may name
	Options  map[string][]string // of builtins: a member that is common to all servers is an option too if it is named here
	Proxy    func(*http.Request) (*url.URL, error)

	// Others reads the members of the file that are not about servers, whenever Servers reads it. Nil: they are ignored.
	Others func([]Member) error

	Logins            upstream.Logins // of people, to servers over HTTP; nil: none
	ClientMetadataURL string          // of the document that describes us to authorization servers; empty: none

	mu   sync.Mutex       // guards the fields below
	read checksums        // of the files that were read last
	last []upstream.Group // of the file that was read last
	pipe []byte           // the content of the file, if it is a pipe that was read
}

var _ upstream.Watcher = (*File)(nil)

// Servers reads the file. All mistakes come in one error, a line each: file:line: key: message. Servers without mistakes
// are returned too.
func (f *File) Servers(ctx context.Context) ([]upstream.Server, error) {
	r := f.parse(ctx)
	var servers []upstream.Server
	for _, e := range r.entries {
		servers = append(servers, e.upstream())
	}
	f.mu.Lock()
	f.read, f.last = r.read, r.groups
	f.mu.Unlock()
	return servers, errors.Join(r.errs...)
}

// parse reads the file into entries and mistakes.
func (f *File) parse(ctx context.Context) *reader {
	r, root := f.open(ctx)
	if len(r.errs) == 0 {
		r.root(root)
	}
	return r
}

// open reads the syntax of the file.
func (f *File) open(ctx context.Context) (r *reader, root hujson.Value) {
	r = &reader{ctx: ctx, file: f, read: checksums{}, seen: map[string]int{}}
	data, err := r.readFile(f.Path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("reading the configuration: %w", err))
		return r, root
	}
	if len(bytes.TrimSpace(data)) == 0 {
		r.errs = append(r.errs, fmt.Errorf(`%s: the file is empty; without servers, write {"mcpServers": {}}`, f.Path))
	} else if root, err = hujson.Parse(data); err != nil {
		r.errs = append(r.errs, syntaxError(f.Path, err))
	}
	r.data = data
	return r, root
}

// syntaxError writes the place of a mistake like all other errors. It drops the invalid value that the parser quotes: it may
// be a secret, of any length.
func syntaxError(path string, err error) error {
	var line, column int
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	if n, _ := fmt.Sscanf(text, "line %d, column %d: ", &line, &column); n == 2 {
		_, text, _ = strings.Cut(text, ": ")
		if strings.HasPrefix(text, "invalid literal") {
			text = "this is no JSON: a word without quotes, or a string that contains a line break"
		}
		return fmt.Errorf("%s:%d:%d: %s", path, line, column, text)
	}
	return fmt.Errorf("%s: %s", path, text)
}

// checksums are those of the files that were read; for one that could not be read, that of its error.
type checksums map[string][sha256.Size]byte

func checksum(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		data = []byte("error: " + err.Error())
	}
	return sha256.Sum256(data)
}

// reader reads one file.
type reader struct {
	ctx     context.Context
	file    *File
	data    []byte
	inputs  []input
	entries []*entry
	groups  []upstream.Group
	errs    []error
	read    checksums
	seen    map[string]int // servers, and the offsets of their names
}

// readFile reads a file and records its checksum.
func (r *reader) readFile(path string) ([]byte, error) {
	data, err := r.file.content(r.ctx, path)
	r.read[path] = checksum(data, err)
	return data, err
}

// content reads a file. Its errors are for people.
func (f *File) content(ctx context.Context, path string) ([]byte, error) {
	read := f.ReadFile
	switch info, err := os.Stat(path); {
	case read != nil:
	case path == f.Path && err == nil && info.Mode()&fs.ModeNamedPipe != 0:
		read = func(string) ([]byte, error) { return f.piped(ctx) }
	default:
		read = func(path string) ([]byte, error) { return namedfile.Read(path, MaxFile) }
	}
	data, err := read(path)
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no file %s", path)
	case errors.As(err, &pathErr):
		err = fmt.Errorf("%s: %w", path, pathErr.Err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err
}

// piped reads a pipe once, and no longer than ctx lives: its content cannot be read again.
func (f *File) piped(ctx context.Context) (data []byte, err error) {
	f.mu.Lock()
	data = f.pipe
	f.mu.Unlock()
	if data == nil {
		data, err = namedfile.ReadOnce(ctx, f.Path, MaxFile)
	}
	if err == nil {
		f.mu.Lock()
		f.pipe = data
		f.mu.Unlock()
	}
	return data, err
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

// root reads the whole file. Clients keep other settings beside the servers.
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
		case key == groupsKey:
			r.readGroups(m)
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
		r.fail(root.StartOffset, "", `there is neither "mcpServers" nor "servers"; without servers, write "mcpServers": {}`)
	}
	if r.file.Others != nil {
		members, _ := r.members(root)
		if err := r.file.Others(members); err != nil {
			r.errs = append(r.errs, err)
		}
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
			r.fail(s.Name.StartOffset, name, "the server is defined twice, first at %s; rename one of them", r.where(first))
			continue
		}
		r.seen[name] = s.Name.StartOffset
		r.server(name, s)
	}
}

// Watch implements [upstream.Watcher]. Only a changed content counts: size and times of a file miss a write within their
// resolution, and a new owner who makes the file readable.
func (f *File) Watch(ctx context.Context, changed func()) error {
	now := func() checksums { return f.now(ctx, f.lastRead()) }
	following.Watch(ctx, f.lastRead, now, maps.Equal, changed)
	return nil
}

// lastRead returns the checksums of the files that were read last; the map never changes.
func (f *File) lastRead() checksums {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read
}

// now returns the checksums of files as they are now.
func (f *File) now(ctx context.Context, read checksums) checksums {
	now := checksums{}
	for path := range read {
		now[path] = checksum(f.content(ctx, path))
	}
	return now
}

// A Member is a member of the file, or of an object in it.
type Member struct {
	Name string

	offset int
	value  hujson.Value
	file   *reader
}

// Members reads the file and returns its members.
func (f *File) Members(ctx context.Context) ([]Member, error) {
	r, root := f.open(ctx)
	members, _ := r.members(root) // Servers reports a file that is no object
	return members, errors.Join(r.errs...)
}

// Place returns file:line, for messages.
func (m Member) Place() string { return m.file.where(m.offset) }

// Members returns the members of the value, repeated ones too; false: it is no object.
func (m Member) Members() ([]Member, bool) { return m.file.members(m.value) }

// JSON returns the value, without comments.
func (m Member) JSON() json.RawMessage {
	v := m.value.Clone()
	v.Minimize()
	return v.Pack()
}

func (r *reader) members(v hujson.Value) (list []Member, isObject bool) {
	object, isObject := v.Value.(*hujson.Object)
	if !isObject {
		return nil, false
	}
	for _, m := range object.Members {
		list = append(list, Member{Name: nameOf(m), offset: m.Name.StartOffset, value: m.Value, file: r})
	}
	return list, true
}

// groupsKey is the member of a file that holds groups of servers: {"groups": {"dev": ["github", "fs-*"]}}.
const groupsKey = "groups"

// Groups returns the groups that Servers has read last. Their servers may be those of other files.
func (f *File) Groups() []upstream.Group {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.last)
}

// readGroups reads groups. The pool checks them, together with those of other files.
func (r *reader) readGroups(m hujson.ObjectMember) {
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		r.fail(m.Value.StartOffset, groupsKey, `want an object with a list of servers per group, such as {"dev": ["github", "fs-*"]}`)
		return
	}
	for _, one := range object.Members {
		name := nameOf(one)
		key := groupsKey + "." + texts.Cut(name, maxShown)
		value := one.Value.Clone()
		value.Minimize()
		list, err := decode[[]string](value.Pack(), "a list of names of servers")
		if err != nil {
			r.fail(one.Value.StartOffset, key, "%v", err)
			continue
		}
		r.groups = append(r.groups, upstream.Group{Name: name, Servers: list, Where: r.where(one.Name.StartOffset)})
	}
}
