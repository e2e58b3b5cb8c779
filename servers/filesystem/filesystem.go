// Package filesystem is an MCP server over the files of one directory: it reads text files and lists directories. Package
// workspace confines callers to the directory; this package turns its answers into results.
package filesystem

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// Options are the settings of the server. The zero value serves the current directory.
type Options struct {
	Root     string `json:"root" usage:"the directory (default: the current one)"`
	MaxBytes int64  `json:"max_bytes" usage:"the most text of one read_text_file (default 64 MiB)"`
}

const defaultMaxBytes = 64 << 20

const instructions = `Files below one directory. Paths are relative to it ("." is the directory itself). ` +
	`Listings leave out .git, node_modules, target, __pycache__ and what the root's .gitignore names; ` +
	`entries and tree nodes have a "path" that the other tools take.`

// New makes the server. The directory stays open as long as the server is in use.
func New(o Options) (*mcp.Server, error) {
	switch {
	case o.MaxBytes < 0:
		return nil, fmt.Errorf("option max_bytes is %d, want a positive number", o.MaxBytes)
	case o.MaxBytes == 0:
		o.MaxBytes = defaultMaxBytes
	}
	dir, err := workspace.Open(o.Root)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, maxBytes: o.MaxBytes}
	srv, err := tool.Open(tool.Server{
		Name:         "filesystem",
		Title:        "Files of one directory",
		Instructions: instructions,
		Tools:        []tool.Tool{s.readTextFile(), s.listDirectory(), s.directoryTree()},
	})
	if err != nil {
		dir.Close()
		return nil, err
	}
	return srv, nil
}

type server struct {
	dir      *workspace.Dir
	maxBytes int64
}
