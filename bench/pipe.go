package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The lines of pipe. The baseline is the same line in dash, with the programs and the locale of the sandbox.
const (
	searched  = `tail -n +1 app.log | rg error | awk -F, '{print $3}' | sort -u`
	atTheEnd  = `rg nowhere app.log | head -n 5`
	sameShell = "the same line in dash"
)

func pipeRows() []row {
	needs := []string{"dash", "tail", "rg", "gawk", "sort", "head"}
	return []row{
		{
			name: "pipe: tail, rg, awk, sort", baseline: sameShell, needs: needs,
			open: linesOf(searched, func(s sizes) int64 { return s.piped }), goals: []goal{most("time", 1.5)},
		},
		{
			name: "pipe: rg, head", baseline: sameShell, needs: needs,
			open: linesOf(atTheEnd, func(s sizes) int64 { return s.big }), goals: []goal{never(rss, held)},
		},
	}
}

// linesOf compares a line of mcsh server pipe, which runs already, with the shell.
func linesOf(line string, bytes func(sizes) int64) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		root, err := os.MkdirTemp(b.dir, "pipe-")
		if err != nil {
			return pair{}, err
		}
		if err := writeLog(filepath.Join(root, "app.log"), bytes(b.sizes)); err != nil {
			return pair{}, err
		}
		s := new(stack)
		s.push(func() error { return os.RemoveAll(root) })
		session, pid, err := b.pipeServer(ctx, s, root)
		if err == nil {
			_, err = callLine(ctx, session, "ls") // the sandbox starts
		}
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		var last [2]string
		ours := func(ctx context.Context) (q []quantity, err error) {
			start := time.Now()
			last[0], err = callLine(ctx, session, line)
			took := time.Since(start)
			peak, _ := peakRSS(pid)
			return []quantity{{"time", float64(took), duration}, {rss, float64(peak), size}}, err
		}
		base := func(ctx context.Context) ([]quantity, error) {
			cmd := exec.CommandContext(ctx, "dash", "-c", strings.ReplaceAll(line, "awk ", "gawk "))
			cmd.Dir, cmd.Env = root, []string{"PATH=" + os.Getenv("PATH"), "LC_CTYPE=C.UTF-8", "TZ=UTC"}
			start := time.Now()
			out, err := cmd.Output()
			last[1] = string(out)
			return []quantity{{"time", float64(time.Since(start)), duration}}, err
		}
		return pair{ours: ours, base: base, close: func() error {
			var differ error
			if last[0] != last[1] {
				differ = fmt.Errorf("pipe wrote %.200q and dash %.200q", last[0], last[1])
			}
			return errors.Join(differ, s.close())
		}}, nil
	}
}

// writeLog writes JSON lines, and at the end one that is nowhere else.
func writeLog(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, newFeed(size, false).reader())
	if err == nil {
		_, err = io.WriteString(f, "nowhere else\n")
	}
	return errors.Join(err, f.Close())
}

// pipeServer starts mcsh server pipe.
func (b *bench) pipeServer(ctx context.Context, s *stack, root string) (*mcp.ClientSession, int, error) {
	cmd := exec.CommandContext(ctx, b.mcsh, "server", "pipe", "--root", root, "--sandbox", "local", "--limit", "command=10m")
	cmd.Stderr = os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("starting mcsh server pipe: %w", err)
	}
	s.push(session.Close)
	return session, cmd.Process.Pid, nil
}

// callLine returns the standard output of a line.
func callLine(ctx context.Context, session *mcp.ClientSession, line string) (string, error) {
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "pipe", Arguments: map[string]any{"command": line}})
	if err != nil {
		return "", err
	}
	text := res.Content[0].(*mcp.TextContent).Text
	var out struct{ Stdout string }
	if err := json.Unmarshal([]byte(text), &out); err != nil || res.IsError {
		return "", fmt.Errorf("the line %s has failed: %.300s, %w", line, text, err)
	}
	return out.Stdout, nil
}
