package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"
)

const (
	npmCall = "the same call of the npm server, by the same client"
	npmPipe = "the same pipeline with the npm server behind the gateway"
	npmRead = "a go-sdk client that calls the npm server, 32 in flight"
	copied  = "cp, then sync of the copy"

	besides   = "peak RSS besides the result"
	mayBeside = 64e6

	atOnceReads = 32
	pageSize    = 1000
)

// npmServer is the script of @modelcontextprotocol/server-filesystem.
func npmServer() string {
	return filepath.Join(os.Getenv("MCSH_TEST_NODE"), "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
}

// lacksNPM says that the npm server is not here.
func lacksNPM(context.Context) string {
	if _, err := os.Stat(npmServer()); err != nil {
		return "$MCSH_TEST_NODE has no npm server"
	}
	return ""
}

// fileRows are about the built-in server of files. Its calls go beside the SDK. The tree misses its goal nevertheless: of about
// 130 ms, where the npm server takes 280 ms when it is warm and 400 ms in its first calls, the client and the pipe take 20 ms
// on both sides, and the walk that opens, reads and sorts 525 directories 50 ms. 35 ms write the text of 4.5 MB twice, with
// escapes, as the npm server does, and the rest is the text itself and the garbage collector.
func fileRows() []row {
	node := []string{"node"}
	return []row{
		{
			name: "files: directory_tree of 50,000, --reference", baseline: npmCall, needs: node, lacks: lacksNPM,
			open: likeNPM("directory_tree", `{"path":%q}`), goals: []goal{most("time", 0.2)},
		},
		{
			name: "files: search_files over 50,000, --reference", baseline: npmCall, needs: node, lacks: lacksNPM,
			open: likeNPM("search_files", `{"path":%q,"pattern":"**/*.go"}`), goals: []goal{most("time", 0.2)},
		},
		{
			name: "files: reading 10,000 by one for_each", baseline: npmPipe, needs: node, lacks: lacksNPM,
			open: readMany(readByPipeline), goals: []goal{most("time", 0.33)},
		},
		{
			name: "files: reading 10,000, and by a client alone", baseline: npmRead, needs: node, lacks: lacksNPM,
			open: readMany(readByClient),
		},
		{
			name: "files: an edit of 10 MB", baseline: copied, needs: []string{"cp", "sync"},
			open: editLarge(), goals: []goal{most("time", 3)},
		},
		{
			name: "files: an edit of 10 MB, --backup", baseline: copied, needs: []string{"cp", "sync"},
			open: editLarge("--backup"), goals: []goal{most("time", 5)},
		},
		{
			name: "files: pages of 1,000 of a million", baseline: "64 MB", long: true,
			open: pagesOf, goals: []goal{never(besides, 1)},
		},
	}
}

// makeFiles makes n files, a hundred in a directory, of which one in ten has the suffix .go, and returns the directory of all.
func (b *bench) makeFiles(s *stack, n int) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "files-")
	if err != nil {
		return "", err
	}
	s.push(func() error { return os.RemoveAll(dir) })
	in := ""
	for i := range n {
		if i%100 == 0 {
			in = filepath.Join(dir, fmt.Sprintf("module_%02d/part_%03d", i/2000, i/100))
			if err := os.MkdirAll(in, 0o755); err != nil {
				return "", err
			}
		}
		suffix := ".ts"
		if i%10 == 0 {
			suffix = ".go"
		}
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("file_%05d%s", i, suffix)), fmt.Appendf(nil, "// file %d\n", i), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// likeNPM compares a call that takes the root, in place of %q, with the same of the npm server.
func likeNPM(tool, args string) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		dir, err := b.makeFiles(s, b.sizes.files)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		var sides [2]side
		var found [2]int
		for i, cmd := range []*exec.Cmd{exec.CommandContext(ctx, b.mcsh, "server", "filesystem", "--reference", dir), exec.CommandContext(ctx, "node", npmServer(), dir)} {
			p, err := startLines(s, cmd)
			if err != nil {
				return pair{}, errors.Join(err, s.close())
			}
			sides[i] = timed(func(ctx context.Context) error {
				answer, err := p.call(tool, fmt.Sprintf(args, dir))
				found[i] = bytes.Count(answer, []byte(".go"))
				return err
			})
		}
		return pair{ours: sides[0], base: sides[1], close: func() error {
			err := s.close()
			if found[0] != found[1] || found[0] < b.sizes.files/10 {
				err = errors.Join(err, fmt.Errorf("mcsh names %d files, the npm server %d", found[0], found[1]))
			}
			return err
		}}, nil
	}
}

// readMany compares one pipeline that reads all files of a directory with another reader.
func readMany(other func(ctx context.Context, b *bench, s *stack, files manyFiles) (func(context.Context) error, error)) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		dir, err := b.makeFiles(s, b.sizes.small)
		files := manyFiles{dir: dir}
		if err == nil {
			files.size, files.texts, err = textsBelow(dir)
		}
		var ours, base func(context.Context) error
		if err == nil {
			paths := `.. | objects | select(.type=="file") | {path}`
			ours, err = b.readThrough(ctx, s, files, fmt.Sprintf(`{"builtin": "filesystem", "root": %q}`, dir), paths, "length")
		}
		if err == nil {
			base, err = other(ctx, b, s, files)
		}
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		return pair{ours: timed(ours), base: timed(base), close: s.close}, nil
	}
}

// manyFiles are small files, with their texts by path and their size together.
type manyFiles struct {
	dir   string
	size  int
	texts map[string]string
}

// readThrough reads files by one pipeline. paths is the jq program that makes arguments of a tree, length that of a result.
func (b *bench) readThrough(ctx context.Context, s *stack, files manyFiles, server, paths, length string) (func(context.Context) error, error) {
	config, err := b.writeConfig("%s", server)
	if err != nil {
		return nil, err
	}
	t, err := program(s, exec.CommandContext(ctx, b.mcsh, "serve", "--config", config, "--state", "off", "--sandbox", "local"))
	if err != nil {
		return nil, err
	}
	session, err := connect(ctx, s, t, "")
	if err != nil {
		return nil, err
	}
	list := []step{
		{"type": "tool", "server": serverName, "name": "directory_tree", "args": map[string]any{"path": "."}},
		command("jq", "-c", paths),
		{"type": "tool", "server": serverName, "name": "read_text_file", "for_each": true, "concurrency": atOnceReads, "collect": "lines"},
		command("jq", "-s", "map("+length+") | add"),
	}
	params := &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": list}}
	return caller(session, fmt.Sprint(files.size), params), nil
}

// readByPipeline has the npm server behind the gateway.
func readByPipeline(ctx context.Context, b *bench, s *stack, files manyFiles) (func(context.Context) error, error) {
	server := fmt.Sprintf(`{"command": "node", "args": [%q, %q]}`, npmServer(), files.dir)
	paths := `def below($p): .[] | if .children then "\($p)\(.name)/" as $d | .children | below($d) else {path: "\($p)\(.name)"} end; below("")`
	return b.readThrough(ctx, s, files, server, paths, `if type == "object" then .content else . end | length`)
}

// readByClient has no gateway: a client knows the paths, and makes many calls at once.
func readByClient(ctx context.Context, _ *bench, s *stack, files manyFiles) (func(context.Context) error, error) {
	t, err := program(s, exec.CommandContext(ctx, "node", npmServer(), files.dir))
	if err != nil {
		return nil, err
	}
	session, err := connect(ctx, s, t, "")
	return func(ctx context.Context) error {
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(atOnceReads)
		for path, text := range files.texts {
			all.Go(func() error {
				return caller(session, text, &mcp.CallToolParams{Name: "read_text_file", Arguments: map[string]any{"path": path}})(ctx)
			})
		}
		return all.Wait()
	}, err
}

// textsBelow returns the texts of all files below a directory, and their size.
func textsBelow(dir string) (size int, texts map[string]string, err error) {
	texts = map[string]string{}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		size += len(text)
		texts[path] = strings.TrimSpace(string(text))
		return err
	})
	return size, texts, err
}

// editLarge compares an edit of one line of a large file with a copy of the file.
func editLarge(flags ...string) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		dir, err := os.MkdirTemp(b.dir, "edit-")
		if err != nil {
			return pair{}, err
		}
		s.push(func() error { return os.RemoveAll(dir) })
		text := []byte("state: 0\n")
		for len(text) < b.sizes.edited {
			text = append(text, records(int64(b.sizes.edited-len(text)))...)
		}
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if err := errors.Join(os.WriteFile(from, text, 0o600), os.WriteFile(filepath.Join(dir, "f"), text, 0o600)); err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		p, err := startLines(s, exec.CommandContext(ctx, b.mcsh, append([]string{"server", "filesystem", "--root", dir}, flags...)...))
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		n := 0
		return pair{
			ours: timed(func(context.Context) error {
				_, err := p.call("edit_file", fmt.Sprintf(`{"path":"f","edits":[{"oldText":"state: %d\n","newText":"state: %d\n"}]}`, n, n+1))
				n++
				return err
			}),
			base: timed(func(ctx context.Context) error {
				if err := exec.CommandContext(ctx, "cp", from, to).Run(); err != nil {
					return err
				}
				return exec.CommandContext(ctx, "sync", to).Run()
			}),
			close: s.close,
		}, nil
	}
}

// pagesOf lists the first pages of a large directory.
func pagesOf(ctx context.Context, b *bench) (pair, error) {
	s := new(stack)
	dir, err := os.MkdirTemp(b.dir, "entries-")
	if err != nil {
		return pair{}, err
	}
	s.push(func() error { return os.RemoveAll(dir) })
	for i := range b.sizes.entries {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("entry_%07d", i)))
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		if err := f.Close(); err != nil {
			return pair{}, errors.Join(err, s.close())
		}
	}
	ours := func(ctx context.Context) ([]quantity, error) {
		inner := new(stack)
		p, err := startLines(inner, exec.CommandContext(ctx, b.mcsh, "server", "filesystem", "--root", dir))
		if err != nil {
			return nil, errors.Join(err, inner.close())
		}
		m := startMeter()
		const pages = 5
		largest := 0
		for i := range pages {
			cursor := fmt.Sprintf("entry_%07d", i*b.sizes.entries/pages-1)
			answer, cerr := p.call("list_directory", fmt.Sprintf(`{"path":".","limit":%d,"cursor":%q}`, pageSize, cursor))
			err = errors.Join(err, cerr)
			largest = max(largest, len(answer))
		}
		took := m.stop()
		peak, known := peakRSS(p.pid)
		if !known {
			err = errors.Join(err, errors.New("the memory of the server is not known"))
		}
		return []quantity{{"time of a page", float64(took.elapsed) / pages, duration}, {besides, float64(peak) - float64(largest), size}}, errors.Join(err, inner.close())
	}
	base := func(context.Context) ([]quantity, error) { return []quantity{{besides, mayBeside, size}}, nil }
	return pair{ours: ours, base: base, close: s.close}, nil
}
