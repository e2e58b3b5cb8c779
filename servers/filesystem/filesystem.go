// Package filesystem is an MCP server over the files of one directory: it reads, lists, changes, moves and deletes them.
// Package workspace confines callers to the directory and keeps what they change; this package turns its answers into
// results.
package filesystem

import (
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// Options are the settings of the server. The zero value serves the current directory.
type Options struct {
	Root     string `json:"root" usage:"the directory (default: the current one)"`
	MaxBytes int64  `json:"max_bytes" usage:"the most text of one read_text_file or edit_file (default 64 MiB)"`

	ReadOnly     bool  `json:"read_only" usage:"offer only the tools that change nothing"`
	Backup       bool  `json:"backup" usage:"keep every version of every file, for undo_file and redo_file"`
	KeepVersions int   `json:"keep_versions" usage:"with backup: the most versions of one file, the newest (default all)"`
	KeepBytes    int64 `json:"keep_bytes" usage:"with backup: the most bytes of old versions of one file (default all)"`
}

const defaultMaxBytes = 64 << 20

const instructions = `Files below one directory. Paths are relative to it ("." is the directory itself). ` +
	`Listings leave out .git, node_modules, the output of builds, caches and what the root's .gitignore names; ` +
	`entries and tree nodes have a "path" that the other tools take.`

// New makes the server. The directory stays open as long as the server is in use.
func New(o Options) (*mcp.Server, error) {
	switch {
	case o.MaxBytes < 0:
		return nil, fmt.Errorf("option max_bytes is %d, want a positive number", o.MaxBytes)
	case o.MaxBytes == 0:
		o.MaxBytes = defaultMaxBytes
	}
	if o.KeepVersions < 0 || o.KeepBytes < 0 {
		return nil, fmt.Errorf("options keep_versions and keep_bytes are %d and %d, want positive numbers", o.KeepVersions, o.KeepBytes)
	}
	dir, err := workspace.Open(o.Root)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, maxBytes: o.MaxBytes, history: workspace.NewHistory(dir, workspace.HistoryOptions{
		Versions: o.Backup, KeepVersions: o.KeepVersions, KeepBytes: o.KeepBytes,
	})}
	srv, err := tool.Open(tool.Server{
		Name:         "filesystem",
		Title:        "Files of one directory",
		Instructions: instructions,
		Tools:        s.tools(o),
	})
	if err != nil {
		dir.Close()
		return nil, err
	}
	return srv, nil
}

type server struct {
	dir      *workspace.Dir
	history  *workspace.History
	maxBytes int64
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
		all = slices.DeleteFunc(all, func(t tool.Tool) bool { return !t.Effects.ReadOnly })
	}
	return all
}

// reading are the effects of all tools here.
var reading = tool.Effects{ReadOnly: true, Idempotent: true}
