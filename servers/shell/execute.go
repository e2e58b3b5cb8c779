package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

const executeInput = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "The command line, at most 64 KiB. It has nothing to read on standard input."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

const executeOutput = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "The command line."},
    "output": {"type": "string", "description": "Standard output, followed by standard error."},
    "return_code": {"type": "integer", "description": "The exit code; -1: it was denied, did not start, ran out of time, or a signal ended it. In a container a signal is 128 and its number."},
    "reason": {"type": "string", "description": "Why it was denied."},
    "omitted_bytes": {"type": "integer", "description": "The number of bytes that the output lacks in its middle."}
  },
  "required": ["command", "output", "return_code"],
  "additionalProperties": false
}`

type executeArgs struct {
	Command string `json:"command"`
}

// An outcome is the result of a command line.
type outcome struct {
	Command    string `json:"command"`
	Output     string `json:"output"`
	ReturnCode int    `json:"return_code"`
	Reason     string `json:"reason,omitempty"`
	Omitted    int64  `json:"omitted_bytes,omitempty"`
}

var errTime = errors.New("out of time")

const denied = "Command denied by security policy"

func (s *server) executeCommand() tool.Tool {
	return tool.Tool{
		Name:        "execute_command",
		Description: "Runs a command line in a shell and returns its output and exit code." + s.rules.describe(),
		Input:       executeInput, Output: executeOutput,
		Annotations: tool.Changing(true, true),
		Call: tool.New(func(ctx context.Context, a executeArgs) (*mcp.CallToolResult, error) {
			switch {
			case len(a.Command) > maxLine:
				return nil, &tool.Error{Kind: tool.LimitExceeded, Msg: fmt.Sprintf("the command has %d bytes, more than %d", len(a.Command), maxLine), Hint: "write a script to a file, and run that"}
			case strings.ContainsRune(a.Command, 0):
				return nil, &tool.Error{Kind: tool.InvalidArgument, Msg: "the command contains a NUL character", Hint: "leave it out"}
			}
			out, err := s.execute(ctx, a.Command)
			s.log(out)
			if err != nil {
				return nil, err
			}
			return tool.JSON(out)
		}),
	}
}

// execute runs a command line if the rules allow it. It fails only if ctx has ended.
func (s *server) execute(ctx context.Context, line string) (outcome, error) {
	if s.rules != nil {
		if err := s.rules.check(line); err != nil {
			return outcome{Command: line, Output: denied, ReturnCode: -1, Reason: err.Error()}, nil
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.options.Timeout, errTime)
	defer cancel()
	output := capture{max: s.options.MaxOutput}
	more := capture{max: s.options.MaxOutput}
	var stderr io.Writer
	if !s.options.NoStderr {
		stderr = &more
	}
	text := line
	if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
		text = " " + line // it would be taken for an option
	}
	code, err := s.runner.Run(limited, []string{s.shell, "-c", text}, s.env, &output, stderr)
	if ctx.Err() != nil {
		return outcome{Command: line, ReturnCode: -1, Reason: "cancelled"}, ctx.Err()
	}
	output.add(&more)
	out, last := output.text(), ""
	switch {
	case errors.Is(err, errTime):
		code, last = -1, fmt.Sprintf("Command timed out after %v", s.options.Timeout)
	case errors.Is(err, ErrCut):
		last = fmt.Sprintf("[... the output ends here: %v ...]", err)
	case err != nil:
		code, last = -1, fmt.Sprintf("Failed to execute: %v", err)
	}
	if last != "" && out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return outcome{Command: line, Output: out + last, ReturnCode: code, Omitted: output.omitted()}, nil
}

// log writes a line for the operator.
func (s *server) log(o outcome) {
	if !s.options.Verbose || s.options.Log == nil {
		return
	}
	reason := ""
	if o.Reason != "" {
		reason = " (" + o.Reason + ")"
	}
	s.logging.Lock()
	defer s.logging.Unlock()
	// A log that cannot be written must not fail the command, which has run.
	_, _ = fmt.Fprintf(s.options.Log, "mcsh: shell: %q: %d%s\n", texts.Cut(o.Command, maxLogged), o.ReturnCode, reason)
}

const maxLogged = 4 << 10 // bytes of a command line
