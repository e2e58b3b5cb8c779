package jq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/itchyny/gojq"
)

// The exit codes of jq.
const (
	exitFalse   = 1 // -e, and the last output was false or null
	exitBroken  = 2 // the input cannot be read, or the output cannot be written
	exitCompile = 3
	exitNone    = 4 // -e, and there was no output
	exitError   = 5
)

// A run is one execution of a filter.
type run struct {
	f      *Filter
	ctx    context.Context
	source source
	out    *printer
	err    io.Writer

	code     *gojq.Code
	exit     int
	outputs  int
	lastTrue bool // whether the last output was neither false nor null
	halted   bool // by the program, whose exit code then counts and not that of -e
	broken   bool // the input is no good: nothing more can be read
}

// Run executes the filter on in and returns jq's exit code. Messages go to errOut. Output is written before the run
// waits for more input, so that a reader downstream sees it as early as possible. Memory grows with the largest
// document, or with the largest element where the filter allows arrays to be read by element.
func (f *Filter) Run(ctx context.Context, in io.Reader, out, errOut io.Writer) int {
	o := f.options
	r := &run{f: f, ctx: ctx, err: errOut, code: f.code, out: &printer{w: out, indent: o.Indent, ascii: o.ASCII}}
	if ctx.Done() == nil {
		r.ctx = context.Background() // gojq runs faster where it need not look
	}
	r.source = o.source(eager{in, r.out.flush})
	if r.code == nil {
		code, err := f.compile(f.query, r)
		if err != nil {
			fmt.Fprintln(errOut, "jq:", err)
			return exitCompile
		}
		r.code = code
	}
	r.all()
	r.out.flush()
	return r.status()
}

// all runs the program on every input.
func (r *run) all() {
	if r.f.options.NullInput {
		r.document(nil)
		return
	}
	d, _ := r.source.(*decoder)
	for r.going() {
		if d != nil && r.f.each != nil {
			if c, err := d.peek(); err == nil && c == '[' && d.failed == nil {
				r.array(d)
				continue
			}
		}
		v, err := r.source.next()
		switch {
		case isEOF(err):
			return
		case err != nil:
			r.unreadable(err)
			return
		case !r.document(v):
			return
		}
	}
}

// going says whether it makes sense to run on.
func (r *run) going() bool { return r.out.err == nil && !r.broken && r.ctx.Err() == nil }

// document runs the program on one input. It returns false if the run is over.
func (r *run) document(v any) bool {
	err := r.outputsOf(r.code, v, r.print)
	var halt *gojq.HaltError
	switch {
	case err == nil:
		return true
	case errors.As(err, &halt):
		r.exit = halt.ExitCode()
		r.out.flush()
		if v := halt.Value(); v != nil {
			r.stderr(v, nil)
			if _, ok := v.(string); !ok {
				fmt.Fprintln(r.err)
			}
		}
		r.halted = true
		return false
	case r.broken:
		return false
	}
	r.report(err)
	r.exit = exitError
	return r.ctx.Err() == nil
}

// outputsOf runs code on v and hands every output to emit.
func (r *run) outputsOf(code *gojq.Code, v any, emit func(any) error) error {
	iter := code.RunWithContext(r.ctx, v, r.f.values...)
	for {
		v, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, ok := v.(error); ok {
			return err
		}
		if err := emit(v); err != nil {
			return err
		}
		if r.out.err != nil {
			return nil
		}
	}
}

// print writes one output with what stands around it.
func (r *run) print(v any) error {
	o := r.f.options
	r.begin()
	s, isText := v.(string)
	switch {
	case isText && o.Raw0 && strings.Contains(s, "\x00"):
		return errors.New("a string that contains NUL cannot be written with --raw-output0")
	case isText && (o.Raw || o.Join || o.Raw0) && !o.ASCII:
		r.out.b = append(r.out.b, s...)
	default:
		if err := r.out.value(v, 0); err != nil {
			return err
		}
	}
	r.end(v != nil && v != false)
	return nil
}

// begin writes what stands before an output.
func (r *run) begin() {
	if r.f.options.Seq {
		r.out.b = append(r.out.b, 0x1e)
	}
}

// end writes what stands after an output, and remembers whether it was true.
func (r *run) end(isTrue bool) {
	switch o := r.f.options; {
	case o.Raw0:
		r.out.b = append(r.out.b, 0)
	case !o.Join:
		r.out.b = append(r.out.b, '\n')
	}
	r.outputs++
	r.lastTrue = isTrue
	if len(r.out.b) > flushSize {
		r.out.flush()
	}
}

// array runs the program on an array whose bracket comes next, element by element.
func (r *run) array(d *decoder) {
	n := 0
	emit := r.print
	if r.f.inArray {
		r.begin()
		r.out.b = append(r.out.b, '[')
		emit = func(v any) error {
			r.out.separate(n == 0, 1)
			n++
			return r.out.value(v, 1)
		}
	}
	err := d.each(1, func(v any) error {
		if err := r.outputsOf(r.f.each, v, emit); err != nil {
			return err
		}
		return r.out.err
	})
	switch {
	case r.out.err != nil:
		return
	case err == nil:
		if r.f.inArray {
			r.out.close(']', n == 0, 0)
			r.end(true)
		}
		return
	case r.f.inArray:
		r.out.b = append(r.out.b, '\n')
	}
	// Output cannot be taken back: the run ends here.
	if r.broken = true; d.failed != nil {
		r.unreadable(err)
		return
	}
	r.report(err)
	r.exit = exitError
}

// Next implements gojq.Iter for the function inputs.
func (r *run) Next() (any, bool) {
	if r.broken {
		return nil, false
	}
	v, err := r.source.next()
	if isEOF(err) {
		return nil, false
	}
	if err != nil {
		r.unreadable(err)
		return err, true
	}
	return v, true
}

// input is the function of that name. At the end of the inputs it says what jq says; gojq says "break".
func (r *run) input(any, []any) any {
	v, ok := r.Next()
	if !ok {
		return errNoInput{}
	}
	return v
}

// errNoInput is what jq says, capital letter included.
type errNoInput struct{}

func (errNoInput) Error() string { return "No more inputs" }

// unreadable reports that the input cannot be read on.
func (r *run) unreadable(err error) {
	r.broken = true
	r.exit = exitBroken
	r.out.flush()
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		fmt.Fprintf(r.err, "jq: error: invalid JSON: %v\n", syntax)
		return
	}
	fmt.Fprintf(r.err, "jq: error: reading the input: %v\n", err)
}

// report writes an error of the program the way jq does.
func (r *run) report(err error) {
	r.out.flush()
	where := "<unknown>"
	if !r.f.options.NullInput {
		where = fmt.Sprintf("<stdin>:%d", r.source.line())
	}
	msg := ": " + err.Error()
	if value, ok := errors.AsType[gojq.ValueError](err); ok {
		if s, ok := value.Value().(string); ok {
			msg = ": " + s
		} else {
			msg = " (not a string): " + compact(value.Value())
		}
	}
	fmt.Fprintf(r.err, "jq: error (at %s)%s\n", where, msg)
}

func (r *run) debug(v any, _ []any) any {
	fmt.Fprintln(r.err, compact([]any{"DEBUG:", v}))
	return v
}

// stderr writes strings as they are.
func (r *run) stderr(v any, _ []any) any {
	s, ok := v.(string)
	if !ok {
		s = compact(v)
	}
	fmt.Fprint(r.err, s)
	return v
}

// status returns the exit code.
func (r *run) status() int {
	switch {
	case r.out.err != nil:
		fmt.Fprintf(r.err, "jq: error: writing the output: %v\n", r.out.err)
		return exitBroken
	case r.exit != 0 || r.halted || !r.f.options.ExitStatus:
		return r.exit
	case r.outputs == 0:
		return exitNone
	case !r.lastTrue:
		return exitFalse
	}
	return 0
}
