package stages_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// world is the surroundings of a pipeline in tests: one server "demo" whose tools are functions, and a handful of
// commands that run as filters in this process.
type world struct {
	tools map[string]*tool
	files stages.Files // nil without a workspace
	root  string       // of the workspace
	maps  bool         // its sessions take many items

	tried atomic.Int64 // commands that were checked
	given atomic.Int64 // plans that were given up

	mu    sync.Mutex
	calls []string // guarded by mu
}

type tool struct {
	info stages.Tool
	do   func(ctx context.Context, args map[string]any) (string, error)

	answers map[string]json.RawMessage // by arguments, instead of do

	calls, active, peak atomic.Int64
}

func newWorld() *world {
	w := &world{tools: map[string]*tool{}}
	w.add("echo", reads, "value", func(_ context.Context, args map[string]any) (string, error) {
		return encode(args), nil
	})
	w.add("say", reads, "text", func(_ context.Context, args map[string]any) (string, error) {
		return fmt.Sprint(args["text"]), nil
	})
	w.add("get", reads, "id", func(_ context.Context, args map[string]any) (string, error) {
		if fmt.Sprint(args["id"]) == "13" {
			return "", errors.New("no such id: 13")
		}
		return fmt.Sprintf(`{"id":%v,"name":"n%v"}`, args["id"], args["id"]), nil
	})
	w.add("numbers", reads, "n", func(_ context.Context, args map[string]any) (string, error) {
		n, _ := strconv.Atoi(fmt.Sprint(args["n"]))
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String(), nil
	})
	w.add("slow", reads, "ms", func(ctx context.Context, args map[string]any) (string, error) {
		ms, _ := strconv.Atoi(fmt.Sprint(args["ms"]))
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
			return encode(args), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	w.add("write", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		return "wrote " + fmt.Sprint(args["x"]), nil
	})
	new(trials).add(w)
	return w
}

const (
	reads  = true
	writes = false
)

// add adds a tool with one required argument.
func (w *world) add(name string, readOnly bool, arg string, do func(context.Context, map[string]any) (string, error)) *tool {
	t := &tool{do: do, info: stages.Tool{
		Server: "demo", Name: name, Annotated: true, ReadOnly: readOnly, Signature: name + "(" + arg + ": any)",
		Input: stages.Input{Properties: []string{arg}, Required: []string{arg}, Closed: name == "get" || name == "write"},
	}}
	t.info.Input.Check = func(_ context.Context, args json.RawMessage, partial bool) ([]string, string) {
		var m map[string]any
		json.Unmarshal(args, &m)
		if _, ok := m[arg]; !ok && !partial {
			return []string{fmt.Sprintf("missing %q", arg)}, ""
		}
		return nil, ""
	}
	if arg == "x" && name != "write" { // a number, which a line of text spells
		t.info.Input.Declared = map[string]stages.Property{arg: {Types: []string{"integer"}}}
	}
	w.tools[name] = t
	return t
}

func encode(args map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(args)
	return strings.TrimSpace(b.String())
}

func (w *world) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	if server != "demo" {
		return nil, stages.Errorf(stages.UnknownServer, `the servers are "demo"`, "unknown server %q", server)
	}
	t := w.tools[name]
	if t == nil {
		return nil, stages.Errorf(stages.UnknownTool, "", "no tool %q on %q", name, server)
	}
	return &t.info, nil
}

func (w *world) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	name, args, timeout := c.Name, c.Args, c.Timeout
	if !c.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	t := w.tools[name]
	t.calls.Add(1)
	for n := t.active.Add(1); ; {
		if p := t.peak.Load(); n <= p || t.peak.CompareAndSwap(p, n) {
			break
		}
	}
	defer t.active.Add(-1)
	w.mu.Lock()
	w.calls = append(w.calls, name+string(args))
	w.mu.Unlock()
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return stages.Result{}, err
	}
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var text string
	var err error
	if t.answers != nil {
		text, err = answer(t.answers, args)
	} else {
		text, err = t.do(call, m)
	}
	if errors.As(err, new(unsent)) {
		c.Unsent()
	}
	if err != nil && call.Err() != nil && ctx.Err() == nil {
		return stages.Result{}, stages.Errorf(stages.Timeout, "", "the tool did not answer within %s", timeout)
	}
	if err != nil {
		if ctx.Err() != nil {
			return stages.Result{}, err
		}
		var e *stages.Error
		if errors.As(err, &e) {
			return stages.Result{}, e
		}
		answer := stages.Errorf(stages.ToolError, "", "%w", err)
		answer.Answered = true
		return stages.Result{}, answer
	}
	return resultOf(text), nil
}

// resultOf is a text of a tool; {"@blocks": [texts]} stands for several, and for no content without any, and
// {"@value": value} for structured content.
func resultOf(text string) (r stages.Result) {
	var several struct {
		Blocks *[]string       `json:"@blocks"`
		Value  json.RawMessage `json:"@value"`
	}
	if json.Unmarshal([]byte(text), &several) != nil || several.Blocks == nil && several.Value == nil {
		return stages.Result{Data: []byte(text)}
	}
	if several.Value != nil {
		return stages.Result{Data: several.Value, Kind: stages.Values}
	}
	r.None = len(*several.Blocks) == 0
	for i, b := range *several.Blocks {
		if i > 0 {
			r.Data = append(r.Data, '\n')
		}
		from := int64(len(r.Data))
		r.Data = append(r.Data, b...)
		r.Spans = append(r.Spans, stages.Span{From: from, To: from + int64(len(b))})
	}
	return r
}

// callsOf returns the calls of a tool, in the order in which they were made.
func (w *world) callsOf(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, c := range w.calls {
		if strings.HasPrefix(c, name+"{") {
			list = append(list, c)
		}
	}
	return list
}

// commands of the test world, line by line.
var commands = map[string]func(args []string, in *bufio.Scanner, out io.Writer) error{
	"jq": runJQ,
	"cat": func(_ []string, in *bufio.Scanner, out io.Writer) error {
		for in.Scan() {
			if _, err := fmt.Fprintln(out, in.Text()); err != nil {
				return err
			}
		}
		return in.Err()
	},
	"upper": func(_ []string, in *bufio.Scanner, out io.Writer) error {
		for in.Scan() {
			if _, err := fmt.Fprintln(out, strings.ToUpper(in.Text())); err != nil {
				return err
			}
		}
		return in.Err()
	},
	"head": func(args []string, in *bufio.Scanner, out io.Writer) error {
		n, _ := strconv.Atoi(args[0])
		for range n {
			if !in.Scan() {
				return in.Err()
			}
			if _, err := fmt.Fprintln(out, in.Text()); err != nil {
				return err
			}
		}
		return nil
	},
	"rest": func(_ []string, in *bufio.Scanner, out io.Writer) error { // all but the first line
		in.Scan()
		for in.Scan() {
			if _, err := fmt.Fprintln(out, in.Text()); err != nil {
				return err
			}
		}
		return in.Err()
	},
	"append": func(args []string, in *bufio.Scanner, out io.Writer) error { // its input, then named inputs
		for in.Scan() {
			if _, err := fmt.Fprintln(out, in.Text()); err != nil {
				return err
			}
		}
		_, err := io.WriteString(out, strings.Join(args, ""))
		return errors.Join(in.Err(), err)
	},
	"fail-at": func(args []string, in *bufio.Scanner, out io.Writer) error {
		for in.Scan() {
			if in.Text() == args[0] {
				return stages.Errorf(stages.CommandFailed, "", "cannot bear %s", args[0])
			}
			if _, err := fmt.Fprintln(out, in.Text()); err != nil {
				return err
			}
		}
		return in.Err()
	},
	"roll": func(_ []string, in *bufio.Scanner, out io.Writer) error {
		for in.Scan() {
		}
		_, err := fmt.Fprintf(out, "rolled\n%d\n", rand.Int())
		return errors.Join(in.Err(), err)
	},
	"late": func(_ []string, in *bufio.Scanner, out io.Writer) error { // nobody knows that it is like cat
		for in.Scan() {
			if _, err := fmt.Fprintln(out, in.Text()); err != nil {
				return err
			}
		}
		return in.Err()
	},
	"endless": func(_ []string, _ *bufio.Scanner, out io.Writer) (err error) {
		for err == nil {
			_, err = fmt.Fprintln(out, "y")
		}
		return err
	},
	"early": func(_ []string, in *bufio.Scanner, out io.Writer) error { // says what it has to, and reads on
		_, err := fmt.Fprintln(out, "early")
		for in.Scan() {
		}
		return err
	},
	"drop": func(_ []string, in *bufio.Scanner, _ io.Writer) error {
		for in.Scan() {
		}
		return in.Err()
	},
}

func (w *world) Plan(_, _, _ string) stages.CommandPlan { return w }

// Close notes that what was checked does not run.
func (w *world) Close() error {
	w.given.Add(1)
	return nil
}

// Check knows one command that stops early, one that gathers and two that are not replayable. No command takes "crooked".
func (w *world) Check(_ context.Context, c stages.Command) (stages.Traits, error) {
	w.tried.Add(1)
	if slices.Contains(c.Args, "crooked") {
		return stages.Traits{}, stages.Errorf(stages.DisallowedArgument, "make it straight", "%s: it is crooked", c.Name)
	}
	traits := stages.Traits{StopsEarly: c.Name == "head", Blocking: c.Name == "sort", Replayable: c.Name != "roll" && c.Name != "late", KeepsKind: c.Name == "head" || c.Name == "fail-at" || c.Name == "rest", Values: c.Name == "jq" && !slices.Contains(c.Args, "-r")}
	if c.Name == "jq" {
		_, err := compileJQ(c.Args)
		return traits, err
	}
	if commands[c.Name] == nil {
		return traits, stages.Errorf(stages.DisallowedCommand, "", "unknown command %q", c.Name)
	}
	for _, name := range c.Inputs {
		if !slices.Contains(c.Args, "@"+name) {
			return traits, stages.Errorf(stages.InvalidPipeline, "", "%s does not read the input @%s", c.Name, name)
		}
	}
	return traits, nil
}

func (w *world) Open(context.Context) (stages.Session, error) {
	s := &session{kept: map[string]string{}}
	if w.maps {
		return mapping{s}, nil
	}
	return s, nil
}

type session struct {
	mu   sync.Mutex
	kept map[string]string // named inputs, by set and name; guarded by mu
}

func (s *session) Close() error { return nil }

// Keep keeps an input in memory. One that begins with "too long" is refused, as a full disk does.
func (s *session) Keep(_ context.Context, set int, name string, in io.Reader) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(data, []byte("too long")) {
		return stages.Errorf(stages.LimitExceeded, "", "the input @%s is too long", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(set, "@", name)
	if _, again := s.kept[key]; again || set == 0 {
		return fmt.Errorf("input %s is kept twice, or without a set", key)
	}
	s.kept[key] = string(data)
	return nil
}

// arguments puts the text of inputs in the place of their names. It fails if one is not there yet.
func (s *session) arguments(c stages.Command) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := slices.Clone(c.Args)
	for _, name := range c.Inputs {
		text, ok := s.kept[fmt.Sprint(c.Set, "@", name)]
		if !ok {
			return nil, fmt.Errorf("input @%s is not there yet", name)
		}
		args[slices.Index(args, "@"+name)] = text
	}
	return args, nil
}

// Map takes no items: see [mapping].
func (s *session) Map(stages.Command, func(int, stages.Usage)) (stages.MapFilter, error) {
	return nil, nil
}

// Prepare runs the commands of a chain one goroutine each, as the sandbox runs processes.
func (s *session) Prepare(chain []stages.Command, used func(int, stages.Usage)) (stages.Filter, error) {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		errs := make([]error, len(chain))
		var wg sync.WaitGroup
		for i, c := range chain {
			next, wrote := out, new(countingWriter)
			var pr *io.PipeReader
			if i < len(chain)-1 {
				var pw *io.PipeWriter
				pr, pw = io.Pipe()
				next = pw
			}
			reader := in
			wg.Go(func() {
				counter := &counting{r: reader}
				scan := bufio.NewScanner(counter)
				scan.Buffer(nil, 1<<20)
				args, err := s.arguments(c)
				if err == nil {
					err = commands[c.Name](args, scan, wrote.to(next))
				}
				var e *stages.Error
				if errors.As(err, &e) {
					e.Place = stages.Place(strconv.Itoa(i + 1))
				}
				errs[i] = err
				if pw, ok := next.(*io.PipeWriter); ok && next != out {
					if err != nil {
						err = io.ErrClosedPipe // the command that failed returns the cause, once
					}
					pw.CloseWithError(err)
				}
				if p, ok := reader.(*io.PipeReader); ok {
					p.CloseWithError(io.ErrClosedPipe)
				}
				used(i, stages.Usage{BytesIn: counter.n, BytesOut: wrote.n})
			})
			in = pr
		}
		wg.Wait()
		for _, err := range errs {
			var e *stages.Error
			if errors.As(err, &e) {
				return err
			}
		}
		return errs[len(errs)-1]
	}, nil
}

type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) to(w io.Writer) io.Writer {
	c.w = w
	return c
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (w *world) deps() stages.Deps {
	return stages.Deps{Tools: w, Commands: w, Files: w.files, Schemas: stageSchemas}
}

// stageSchemas checks stages as the gateway does.
var stageSchemas = schemas.Stages()

// run compiles and runs a pipeline and returns its output.
func (w *world) run(t *testing.T, pipeline, input string) (string, stages.Report, error) {
	t.Helper()
	return w.runWith(t, pipeline, input, w.deps(), stages.RunOptions{})
}

func (w *world) runWith(t *testing.T, pipeline, input string, d stages.Deps, o stages.RunOptions) (string, stages.Report, error) {
	t.Helper()
	compile, in := stages.Compile, io.Reader(nil)
	if input != "" {
		compile, in = stages.CompileFed, strings.NewReader(input)
	}
	p, errs := compile(t.Context(), []byte(pipeline), d)
	if errs != nil {
		t.Fatalf("compiling %s: %v", pipeline, errs)
	}
	var out bytes.Buffer
	report, err := p.Run(t.Context(), in, &out, o)
	return out.String(), report, err
}

// sorted returns a sorted copy.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
