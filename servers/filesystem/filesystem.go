// Package filesystem is an MCP server over the files of one directory: it reads, lists, changes, moves and deletes them.
// Package workspace confines callers to the directory and keeps what they change; this package turns its answers into
// results.
package filesystem

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// Options are the settings of the server. The zero value serves the current directory.
type Options struct {
	Root       string   `json:"root" usage:"the directory (default: the current one)"`
	Multi      bool     `json:"multi" usage:"serve many roots: every call names its own"`
	AllowRoots []string `json:"allow_roots" usage:"with multi: a directory that roots are in, or are (default: any)"`

	Reference   bool     `json:"reference" usage:"the tools and texts of the npm server @modelcontextprotocol/server-filesystem"`
	Directories []string `json:"directories" usage:"with reference: the directories (default: root)"`

	ReadOnly     bool  `json:"read_only" usage:"offer only the tools that change nothing"`
	Backup       bool  `json:"backup" usage:"keep every version of every file, for undo_file and redo_file"`
	KeepVersions int   `json:"keep_versions" usage:"with backup: the most versions of one file, the newest (default: all)"`
	KeepBytes    int64 `json:"keep_bytes" usage:"with backup: the most bytes of the versions of one file (default: all)"`
	MaxBytes     int64 `json:"max_bytes" usage:"the most text of one read_text_file or edit_file (default 64 MiB)"`

	Remote bool `json:"-"` // callers come over HTTP
}

// Writes reports whether the server has tools that change files.
func (o Options) Writes() bool { return !o.ReadOnly }

const defaultMaxBytes = 64 << 20

const instructions = `Files below one directory. Paths are relative to it ("." is the directory itself). ` +
	`Listings leave out .git, node_modules, the output of builds, caches and what the root's .gitignore names; ` +
	`entries and tree nodes have a "path" that the other tools take.`

// New makes the server. The directory stays open as long as the server is in use.
func New(o Options) (*tool.Opened, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	switch {
	case o.Multi:
		return openMulti(o)
	case o.Reference:
		return openReference(o)
	}
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	srv, err := tool.Open(tool.Server{
		Name: "filesystem", Title: "Files of one directory", Instructions: instructions, Tools: s.tools(o),
	})
	if err != nil {
		s.dir.Close()
		return nil, err
	}
	return srv, nil
}

// check fills in the defaults.
func (o *Options) check() error {
	for name, n := range map[string]int64{"max_bytes": o.MaxBytes, "keep_versions": int64(o.KeepVersions), "keep_bytes": o.KeepBytes} {
		if n < 0 {
			return fmt.Errorf("option %s is %d, want a positive number", name, n)
		}
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	switch {
	case o.Multi && o.Root != "":
		return errors.New("with option multi every call names its root: remove the option root")
	case !o.Multi && len(o.AllowRoots) > 0:
		return errors.New("option allow_roots is for option multi")
	case o.Multi && o.Reference:
		return errors.New("options multi and reference exclude each other")
	case len(o.Directories) > 0 && (!o.Reference || o.Root != ""):
		return errors.New("option directories is for option reference, without root: give one directory as root, or add reference")
	case !o.Backup && (o.KeepVersions > 0 || o.KeepBytes > 0):
		return errors.New("options keep_versions and keep_bytes are for option backup")
	case o.Remote && o.Multi && len(o.AllowRoots) == 0:
		return errors.New("over HTTP every caller could reach all directories: name some with option allow_roots")
	}
	return nil
}

// server serves one root.
type server struct {
	dir      *workspace.Dir
	history  *workspace.History
	maxBytes int64
}

func open(o Options) (*server, error) {
	dir, err := workspace.Open(o.Root)
	if err != nil {
		return nil, err
	}
	return serve(dir, o), nil
}

func serve(dir *workspace.Dir, o Options) *server {
	return &server{dir: dir, maxBytes: o.MaxBytes, history: workspace.NewHistory(dir, workspace.HistoryOptions{
		Versions: o.Backup, KeepVersions: o.KeepVersions, KeepBytes: o.KeepBytes,
	})}
}

// tools returns those that the options allow.
func (s *server) tools(o Options) []tool.Tool {
	all := []tool.Tool{
		s.readTextFile(), s.listDirectory(), s.directoryTree(), s.listTrash(), s.searchFile(),
		s.createFile(), s.writeFile(), s.editFile(), s.createDirectory(), s.moveFile(), s.deleteFile(), s.restoreFile(),
	}
	if o.Backup {
		all = append(all, s.undoFile(), s.redoFile())
	}
	if o.ReadOnly {
		all = slices.DeleteFunc(all, func(t tool.Tool) bool { return !t.Annotations.ReadOnlyHint })
	}
	return all
}

// repeatable marks the annotations of a tool whose second call with equal arguments changes nothing more.
func repeatable(a *mcp.ToolAnnotations) *mcp.ToolAnnotations {
	a.IdempotentHint = true
	return a
}
