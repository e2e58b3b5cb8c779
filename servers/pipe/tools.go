package pipe

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
)

const pipeInput = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "One pipeline, such as tail -n 100 app.log | rg ERROR | tee out/errors.txt. Words are literal: no variables, globs, redirections, ; or &&."},
    "cwd": {"type": "string", "description": "The directory of this call, relative to the root; default: that of the session."},
    "confirm_oversize": {"type": "boolean", "description": "Let tee save more than 1 MiB."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

const failureSchema = `{"type": "object", "description": "Why the call failed.", "properties": {
      "code": {"type": "string"}, "reason": {"type": "string"}, "detail": {"type": "string"}, "suggestion": {"type": "string"},
      "tee": {"type": "object", "description": "What tee has saved all the same."}}}`

const savedProperties = `"path": {"type": "string", "description": "Relative to the root."}, "mirror": {"type": "string", "description": "The copy of all that was saved there."},
      "bytes": {"type": "integer"}, "append": {"type": "boolean"}, "record_id": {"type": "integer"}`

const pipeOutput = `{
  "type": "object",
  "properties": {
    "stdout": {"type": "string"},
    "meta": {"type": "object", "properties": {
      "steps": {"type": "array", "items": {"type": "object", "properties": {
        "command": {"type": "string"}, "output_size": {"type": "integer", "description": "Bytes."},
        "truncated": {"type": "boolean", "description": "Whether stdout has less of it."}, "execution_time_ms": {"type": "number"}},
        "required": ["command", "output_size", "truncated", "execution_time_ms"]}},
      "tee": {"type": ["object", "null"], "properties": {` + savedProperties + `}},
      "cwd": {"type": "string", "description": "After cd and pwd: the directory, for the argument cwd."}},
      "required": ["steps", "tee"]},
    "error": ` + failureSchema + `
  },
  "additionalProperties": false
}`

type pipeArgs struct {
	Command  string `json:"command"`
	Cwd      string `json:"cwd"`
	Oversize bool   `json:"confirm_oversize"`
}

type output struct {
	Stdout string `json:"stdout"`
	Meta   meta   `json:"meta"`
}

type meta struct {
	Steps []step `json:"steps"`
	Saved *Saved `json:"tee"`
	Cwd   string `json:"cwd,omitempty"`
}

type step struct {
	Command   string  `json:"command"`
	Size      int64   `json:"output_size"`
	Truncated bool    `json:"truncated"`
	Millis    float64 `json:"execution_time_ms"`
}

func (s *server) pipe() tool.Tool {
	return tool.Tool{
		Name: "pipe",
		Description: "Runs one shell pipeline over the files of the directory, without a shell. " +
			"Commands: " + strings.Join(s.programs, " ") +
			" and tee in pipes; pwd and cd alone. tee FILE (or tee -a FILE) saves what flows through it, with a copy in the audit mirror.",
		Input: pipeInput, Output: pipeOutput,
		Annotations: tool.Changing(true, false),
		Call: tool.NewInSession(func(ctx context.Context, session *mcp.ServerSession, a pipeArgs) (*mcp.CallToolResult, error) {
			out, err := s.line(ctx, session, a)
			if err != nil {
				return failed(err)
			}
			return tool.JSON(out)
		}),
	}
}

// line runs one line.
func (s *server) line(ctx context.Context, session *mcp.ServerSession, a pipeArgs) (*output, error) {
	s.parsing.Lock()
	commands, wrong := parse(a.Command)
	s.parsing.Unlock()
	if wrong != nil {
		return nil, wrong
	}
	dir, wrong := s.directory(session, a.Cwd)
	if wrong == nil {
		wrong = s.guard(commands, dir, a.Oversize)
	}
	if wrong != nil {
		return nil, wrong
	}
	if c := commands[0]; s.roleOf(c.Name) == navigates {
		return s.navigate(session, c, dir)
	}
	most, encoded := room(s.results, commands)
	text := &stdout{most: most, encoded: encoded}
	report, err := s.run(ctx, Line{dir, commands}, nil, text)
	if err != nil {
		return nil, err
	}
	out := &output{Stdout: text.string(), Meta: meta{Saved: report.Saved}}
	for i, c := range shown(commands) {
		out.Meta.Steps = append(out.Meta.Steps, step{c, report.Steps[i].Size, false, report.Steps[i].Millis})
	}
	last := &out.Meta.Steps[len(commands)-1]
	last.Size, last.Truncated = text.size, text.full
	return out, nil
}

// run runs a line in the engine, if there is one.
func (s *server) run(ctx context.Context, l Line, in io.Reader, out io.Writer) (Report, error) {
	if s.engine == nil {
		return Report{}, noEngine
	}
	return s.engine.Run(ctx, l, in, out)
}

// navigate runs cd or pwd.
func (s *server) navigate(session *mcp.ServerSession, c Command, dir string) (*output, error) {
	text := ""
	switch {
	case c.Name == "pwd" && len(c.Args) > 0:
		return nil, refuse(DisallowedArgument, "Write pwd alone.", "pwd takes no arguments.")
	case c.Name == "pwd":
		text = dir + "\n"
	case len(c.Args) > 1 || len(c.Args) == 1 && strings.HasPrefix(c.Args[0], "-"):
		return nil, refuse(DisallowedArgument, "Write cd DIR, or cd alone for the root.", "cd takes one directory and no options.")
	default:
		to := "."
		if len(c.Args) == 1 {
			if to = c.Args[0]; !path.IsAbs(to) && to != "" {
				to = dir + "/" + to
			}
		}
		real, err := s.dir.Directory(to)
		if err != nil {
			return nil, placed(err)
		}
		s.sessions.set(session, real)
		dir = real
	}
	return &output{text, meta{Steps: []step{{c.Text, int64(len(text)), false, 0}}, Cwd: dir}}, nil
}

const writeInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file, relative to the directory of the session. Missing directories above it are made."},
    "content": {"type": "string", "description": "The text."},
    "append": {"type": "boolean", "description": "Add the text to the end of the file as it is, in place of replacing the file."},
    "confirm_oversize": {"type": "boolean", "description": "Save more than 1 MiB."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

const writeOutput = `{
  "type": "object",
  "properties": {
    ` + savedProperties + `,
    "error": ` + failureSchema + `
  },
  "additionalProperties": false
}`

type writeArgs struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Append   bool   `json:"append"`
	Oversize bool   `json:"confirm_oversize"`
}

func (s *server) write() tool.Tool {
	return tool.Tool{
		Name:        "write",
		Description: "Saves text as a file of the directory, whole or not at all, with a copy in the audit mirror, as tee does.",
		Input:       writeInput, Output: writeOutput,
		Annotations: tool.Changing(true, false),
		Call: tool.NewInSession(func(ctx context.Context, session *mcp.ServerSession, a writeArgs) (*mcp.CallToolResult, error) {
			saved, err := s.save(ctx, session, a)
			if err != nil {
				return failed(err)
			}
			return tool.JSON(saved)
		}),
	}
}

// save saves text by a line with nothing but a tee.
func (s *server) save(ctx context.Context, session *mcp.ServerSession, a writeArgs) (*Saved, error) {
	dir, wrong := s.directory(session, "")
	if wrong != nil {
		return nil, wrong
	}
	name, wrong := target(a.Path, dir, s.dir)
	if wrong != nil {
		return nil, wrong
	}
	save := Command{Text: "tee", Name: "tee", Save: &Save{name, a.Append, a.Oversize}}
	report, err := s.run(ctx, Line{dir, []Command{save}}, strings.NewReader(a.Content), io.Discard)
	return report.Saved, err
}
