package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/forms"
	"github.com/mcsh-dev/mcsh/stages"
)

// errRefusedByPerson is the answer of a person who answers nothing.
var errRefusedByPerson = errors.New("the person has refused")

// mostTries bounds the wrong answers to one field.
const mostTries = 3

// An interview asks the person at a terminal, one question after another.
type interview struct {
	lines chan string // typed by the person; closed at the end of the input
	in    *bufio.Reader
	out   io.Writer
	begin func() // called before the first question, and later ones
}

// asker returns an asker for the person at the terminal; nil: standard input or standard error is none.
func (p *program) asker(ctx context.Context, s *screen) *stages.Asker {
	if !isTerminal(p.stdin) || !p.stderr.terminal {
		return nil
	}
	return newInterview(p.stdin, p.stderr, s.stop).asker(ctx)
}

func newInterview(in io.Reader, out io.Writer, begin func()) *interview {
	return &interview{in: bufio.NewReaderSize(in, 64<<10), out: out, begin: begin}
}

func (d *interview) asker(ctx context.Context) *stages.Asker {
	return gateway.AskPerson(ctx, gateway.DefaultAskTimeout, d.fill)
}

// read reads lines beside the questions: a read from a terminal does not end with a context.
func (d *interview) read() {
	defer close(d.lines)
	for {
		line, err := d.in.ReadSlice('\n')
		if err != nil {
			return // also of a line that is too long
		}
		d.lines <- strings.TrimSpace(string(line))
	}
}

// line asks for a line.
func (d *interview) line(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(d.out, prompt)
	select {
	case line, ok := <-d.lines:
		if ok {
			return line, nil
		}
		return "", errRefusedByPerson
	case <-ctx.Done():
		fmt.Fprintln(d.out, "\nthe question is withdrawn")
		return "", context.Cause(ctx)
	}
}

// fill shows a question, and returns the answers to its form.
func (d *interview) fill(ctx context.Context, q *mcp.ElicitParams, form *forms.Form) (json.RawMessage, error) {
	d.begin()
	if d.lines == nil {
		d.lines = make(chan string)
		go d.read() // ends with the input, or with the process
	}
	fmt.Fprintf(d.out, "%s\n", q.Message)
	if q.URL != "" {
		fmt.Fprintf(d.out, "The page: %s\n", q.URL)
	}
	yes, err := d.line(ctx, "Answer it? [y/N] ")
	if err != nil || !strings.EqualFold(yes, "y") && !strings.EqualFold(yes, "yes") {
		return nil, errors.Join(err, errRefusedByPerson)
	}
	if form == nil {
		return nil, nil
	}
	answers := bytes.NewBufferString("{")
	for _, field := range form.Fields() {
		value, err := d.field(ctx, field)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if answers.Len() > 1 {
			answers.WriteByte(',')
		}
		name, _ := json.Marshal(field.Name)
		answers.Write(append(append(name, ':'), value...))
	}
	answers.WriteByte('}')
	return answers.Bytes(), nil
}

// field asks for the answer to one field; nil: it has none.
func (d *interview) field(ctx context.Context, f forms.Field) (json.RawMessage, error) {
	prompt := f.Name
	if f.About != "" {
		prompt += " (" + f.About + ")"
	}
	switch {
	case f.Options != nil:
		prompt += ", of " + strings.Join(f.Options, ", ")
	case f.Type != "string":
		prompt += ", " + f.Type
	}
	if !f.Required {
		prompt += ", or nothing"
	}
	for range mostTries {
		text, err := d.line(ctx, "  "+prompt+": ")
		if err != nil || text == "" && !f.Required {
			return nil, err
		}
		value, err := f.Parse(text)
		if err == nil {
			return value, nil
		}
		fmt.Fprintf(d.out, "  %v\n", err)
	}
	return nil, errRefusedByPerson
}
