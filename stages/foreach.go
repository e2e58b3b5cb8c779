package stages

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// EachOptions are the fields that every kind of stage with Each set accepts beside its own.
type EachOptions struct {
	ForEach bool `json:"for_each,omitempty" jsonschema_description:"Run the stage once per item of the input, in parallel, results in order."`
	Mapping
}

// ForEachStage runs a pipeline of its own for every item of its input (docs/pipeline.md, for_each).
type ForEachStage struct {
	Stages List `json:"stages" jsonschema:"minItems=1" jsonschema_description:"Stages that run for each item."`
	Mapping
	Timeout float64 `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Seconds for all items together."`
}

// Compile compiles the stages of the body.
func (f *ForEachStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	timeout, terr := within(f.Timeout, s.Limits.Run, s.Limits.name("run"))
	retryOn, merr := f.retriedErrors()
	body, err := s.mapping(f.Mapping).List(ctx, f.Stages, InEach, "", true)
	if err := errors.Join(terr, merr, err); err != nil {
		return nil, err
	}
	return eachStep(body, f.Mapping, retryOn, s, collectArray, timeout), nil
}

// A collecting stage may write many values by itself. It gets the form of "collect" where no for_each has it, and reports
// whether it uses that.
type collecting interface{ collectAs(form string) bool }

// compileEach compiles a stage that may have the for_each flag: shorthand for a for_each stage around it.
func compileEach(ctx context.Context, stage Stage, o EachOptions, s Scope) (*Step, error) {
	if !o.ForEach {
		if c, ok := stage.(collecting); ok && c.collectAs(o.Collect) {
			o.Collect = ""
		}
		step, err := stage.Compile(ctx, s)
		return step, errors.Join(err, o.withoutFlag())
	}
	inner := s.mapping(o.Mapping)
	inner.ListKind, inner.Each, inner.Fed, inner.Last = InEach, true, true, true
	step, err := stage.Compile(ctx, inner)
	retryOn, merr := o.retriedErrors()
	if err := errors.Join(merr, err); err != nil {
		return nil, err
	}
	step.place, step.Label = s.place, s.label
	form := collectArray
	if step.Command != nil {
		form = collectLines
	}
	each := eachStep([]*Step{step}, o.Mapping, retryOn, s, form, s.Limits.Run)
	each.flag = true
	return each, nil
}

// eachStep wraps compiled stages so that they run once per item. collect is the form of the results where o names none.
func eachStep(body []*Step, o Mapping, retryOn *regexp.Regexp, s Scope, collect string, timeout time.Duration) *Step {
	f := &forEach{Mapping: o, body: body, changes: changing(body), retryOn: retryOn, direct: s.direct, inner: s.Each, given: o.Concurrency > 0}
	f.Concurrency = max(1, min(cmp.Or(o.Concurrency, defaultConcurrency(body)), maxConcurrency))
	if chains := chainsOf(body); chains > 0 {
		f.Concurrency = min(f.Concurrency, max(1, commandsAtOnce/chains))
	}
	f.Collect = cmp.Or(o.Collect, collect)
	f.OnError = cmp.Or(o.OnError, onErrorFail)
	f.raw = f.Collect == collectLines && !o.WithItem && len(body) > 0 && body[len(body)-1].Command != nil
	step := &Step{
		Changes: f.changes, each: f, Nested: []Nested{{Steps: body}},
		clock:   clock{timeout, s.Limits.Run, s.Limits.name("run"), `the stage's "timeout"`},
		Does:    "runs once per item",
		Expects: "a JSON array, JSON values or lines",
	}
	if len(body) == 1 {
		step.Does = body[0].Does + " once per item"
	}
	step.Does += fmt.Sprintf(", up to %d at a time, results in order as %s", f.Concurrency, f.Collect) + o.notes(body)
	tools := toolsOf(body)
	if len(tools) == 0 {
		f.Retries = 0
	}
	for _, t := range tools {
		t.tool.stale = t.tool.stale || step.Changes
	}
	step.Bind = f.bind
	return step
}

// bind makes the filter for one run.
func (f *forEach) bind(ctx context.Context, r *Run, m *Meter) (Filter, error) {
	log, err := r.newItemLog(m.step)
	if err != nil {
		return nil, err
	}
	watch, onward := r.watch, r.onward // the body has others
	r.watch = nil                      // of every item would be too much
	defer func() { r.watch = watch }()
	e := &each{forEach: f, log: log, r: r, m: m, concurrency: f.Concurrency}
	if r.resumed != nil && !f.inner {
		e.shard = r.resumed.Shard
	}
	if e.filter, e.many, m.nested, err = r.bindEach(ctx, f.body); err != nil {
		return nil, err
	}
	if err := e.bindShards(m.step, onward); err != nil {
		return nil, err
	}
	if r.dry.alone(f.body) {
		e.concurrency = 1
	}
	return e.run, nil
}

// commandsAtOnce is how many chains of commands one for_each runs side by side: for commands concurrency is an upper
// bound (docs/pipeline.md, for_each), and what a plan may ask of its worker stays within what the worker takes.
const commandsAtOnce = 4

// chainsOf counts the chains of commands of steps that run at the same time.
func chainsOf(steps []*Step) int {
	n := 0
	for i, s := range steps {
		if s.tool != nil {
			n += s.tool.info.Chains
		}
		if s.Command != nil && (i == 0 || steps[i-1].Command == nil) {
			n++
		}
		times := 1
		if s.each != nil {
			times = s.each.Concurrency
		}
		for _, inner := range s.Nested {
			if !inner.Input {
				n += times * chainsOf(inner.Steps)
			}
		}
	}
	return n
}

// maxConcurrency holds for callers without [Schemas] too: each place in a for_each is a goroutine.
const maxConcurrency = 64

// defaultConcurrency is 8 where running side by side is known to do no harm, else 1.
func defaultConcurrency(body []*Step) int {
	for s := range repeatedSteps(body) {
		if s.alone() {
			return 1
		}
	}
	return 8
}

// forEach is a compiled for_each.
type forEach struct {
	Mapping // with its defaults

	body    []*Step
	changes bool
	retryOn *regexp.Regexp // errors whose items are tried again; nil: all that may be
	raw     bool           // results are bytes, passed on as they are
	given   bool           // somebody has chosen Concurrency
	direct  bool           // it gets the item of the for_each around it, unchanged
	inner   bool           // it runs once per item of another
}

// each maps a filter over the items of its input in one run: the one implementation of for_each (docs/pipeline.md, for_each).
type each struct {
	*forEach
	r           *Run
	m           *Meter
	filter      Filter  // of the body
	many        *mapped // nil, or what runs the body on many items
	log         *itemLog
	concurrency int // 1 in some dry runs

	shard   *shard     // nil: the run is not a part of a for_each
	spreads bool       // workers run the items behind the first ones
	first   firstItems // if it spreads

	begunBefore int // items that an earlier run of this one had begun, up to the last with an effect or a result
}

// Mapping holds the choices of a for_each that do not depend on what it runs.
type Mapping struct {
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=64" jsonschema_description:"Items in flight. Default 8 where everything only reads, else 1."`
	OnError     string `json:"on_error,omitempty" jsonschema:"enum=fail,enum=skip,enum=collect" jsonschema_description:"fail (default): stop at the first failed item. skip: leave it out. collect: put {\"error\": {code, message, attempts, index, item}} in its place; index counts from 1."`
	Retries     int    `json:"retries,omitempty" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Extra attempts per item, with growing waits. Only calls that never arrived, 429, 503, and tools that only read or are idempotent are tried again."`
	RetryOn     string `json:"retry_on,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"Regular expression (RE2): only errors whose message or code matches are tried again."`
	Distinct    *bool  `json:"distinct,omitempty" jsonschema_description:"Make calls with equal arguments once and share the result. Default true for tools that only read, where nothing in the for_each changes anything."`
	WithItem    bool   `json:"with_item,omitempty" jsonschema_description:"Each result becomes {\"item\": ITEM, \"result\": RESULT}."`
	Collect     string `json:"collect,omitempty" jsonschema:"enum=array,enum=lines" jsonschema_description:"array: one JSON array. lines: one result a line (default for commands)."`
}

// The values of on_error.
const (
	onErrorFail    = "fail"
	onErrorSkip    = "skip"
	onErrorCollect = "collect"
)

// The values of collect.
const (
	collectArray = "array"
	collectLines = "lines"
)

// retriedErrors returns what retry_on matches; nil: all errors.
func (o Mapping) retriedErrors() (*regexp.Regexp, error) {
	var idle error
	if o.RetryOn != "" && o.Retries == 0 {
		idle = fielded("retry_on", Errorf(InvalidPipeline, `add "retries": 3, or leave retry_on out`, "retry_on has no meaning without retries"))
	}
	on, err := pattern(o.RetryOn)
	return on, errors.Join(idle, err)
}

// withoutFlag refuses the fields of a mapping where nothing is mapped: they would silently do nothing.
func (o EachOptions) withoutFlag() error {
	given, _ := json.Marshal(o.Mapping) // has only plain values
	members, _ := readObject(given)
	var errs []error
	for _, m := range members {
		errs = append(errs, fielded(m.key, Errorf(InvalidPipeline, `add "for_each": true, or leave `+m.key+` out`,
			"%s has no meaning without for_each", m.key)))
	}
	return errors.Join(errs...)
}

// notes says in the plan what the choices come to for the stages of body.
func (o Mapping) notes(body []*Step) string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch o.OnError {
	case onErrorSkip:
		note("items that fail are left out")
	case onErrorCollect:
		note("items that fail become error objects")
	}
	if o.Retries > 0 {
		note("%s", retryNote(o.Retries, toolsOf(body)))
	}
	if o.Distinct != nil {
		switch {
		case len(toolsOf(body)) == 0:
			note("distinct has no effect: no stage of it calls a tool")
		case *o.Distinct:
			note("calls with equal arguments are made once")
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return "; " + strings.Join(notes, "; ")
}

// retryNote says what is tried again, and what is not.
func retryNote(n int, tools []*Step) string {
	if len(tools) == 0 {
		return "retries have no effect: only calls of tools are tried again"
	}
	var once []string
	for _, s := range tools {
		if !s.tool.repeats {
			once = append(once, s.Label.Called())
		}
	}
	text := fmt.Sprintf("an item whose call fails is tried up to %d more times", n)
	if n == 1 {
		text = "an item whose call fails is tried once more"
	}
	if len(once) > 0 {
		names := strings.Join(once, ", ")
		text += fmt.Sprintf(", but not once a call of %s may have taken effect: then retries have no effect", names)
	}
	return text
}

// mapped is a link whose filter takes many items.
type mapped struct {
	link   *link
	filter MapFilter
}

// bindEach binds the stages of a for_each: as a filter of one item, and of many if there is one.
func (r *Run) bindEach(ctx context.Context, body []*Step) (Filter, *mapped, []*Meter, error) {
	links, meters, err := r.links(ctx, body, false)
	if err != nil {
		return nil, nil, nil, err
	}
	many, err := r.mapper(ctx, links)
	return chain(r, links), many, meters, err
}

// mapper returns how the links of a for_each are run on many items: where they are one command that reads nothing but its
// item, and the session takes many. Else it returns nil.
func (r *Run) mapper(ctx context.Context, links []*link) (*mapped, error) {
	if len(links) != 1 || len(links[0].steps) != 1 {
		return nil, nil
	}
	l := links[0]
	if s := l.steps[0]; s.Command == nil || len(s.Nested) > 0 || s.Changes {
		return nil, nil
	}
	session, err := r.commands(ctx)
	if err != nil {
		return nil, err
	}
	c := *l.steps[0].Command
	c.Each, c.LineBuffered = true, stopEarly(l.onward[1:])
	filter, err := session.Map(c, func(_ int, u Usage) { l.meters[0].add(u) })
	if filter == nil || err != nil {
		return nil, err
	}
	return &mapped{l, filter}, nil
}

// run runs jobs. An error says that not all of them have ended.
func (m *mapped) run(ctx context.Context, jobs <-chan Job, concurrency int) (err error) {
	defer recovered(&err)
	m.filter(ctx, jobs, concurrency)
	return nil
}

// explain is that of the link, whose end with an error is noted.
func (m *mapped) explain(ctx context.Context, err error) error {
	if err != nil {
		m.link.meters[0].broke.Store(true)
	}
	return m.link.explain(ctx, err)
}

// Bounds of retry_on.
const (
	maxPattern      = 1000    // bytes
	maxInstructions = 1000    // of the compiled program
	maxMatched      = 4 << 10 // bytes of an error's message that it is matched against
)

// pattern compiles retry_on. Empty: nil.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	wrong := func(format string, args ...any) error {
		return fielded("retry_on", Errorf(InvalidPipeline, `write a regular expression as RE2 takes it, such as "(?i)rate limit|timed? out|^5\\d\\d"`, format, args...))
	}
	if len(text) > maxPattern {
		return nil, wrong("retry_on has %d bytes, more than %d", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	var bad *syntax.Error
	switch {
	case errors.As(err, &bad):
		return nil, wrong("retry_on is not a regular expression: %s%s: %s", bad.Code, placeOf(bad, text), texts.Quote(bad.Expr))
	case err != nil:
		return nil, err
	}
	if PatternSize(parsed) > maxInstructions {
		return nil, fielded("retry_on", Errorf(InvalidPipeline, "write fewer repetitions: those within others multiply, .* has no number",
			"retry_on compiles to more than %d instructions", maxInstructions))
	}
	return regexp.Compile(text)
}

// runesPerInstruction: so many runes of a character class take the memory of an instruction.
const runesPerInstruction = 8

// PatternSize counts the instructions of a parsed pattern after package regexp has unrolled its repetitions.
func PatternSize(re *syntax.Regexp) int {
	size := 1
	for _, sub := range re.Sub {
		size += PatternSize(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCharClass:
		size += len(re.Rune) / runesPerInstruction
	case syntax.OpCapture, syntax.OpStar, syntax.OpAlternate:
		size += len(re.Sub)
	case syntax.OpRepeat:
		size *= max(re.Min+1, re.Max) // + 1: the rest of a repetition without end
	}
	return max(size, 1)
}

// placeOf says at which character of a pattern a mistake begins, counted from 1; empty: the mistake is the whole pattern's.
func placeOf(bad *syntax.Error, text string) string {
	at := strings.Index(text, bad.Expr)
	if at < 0 || bad.Expr == text {
		return ""
	}
	return fmt.Sprintf(" at character %d", utf8.RuneCountInString(text[:at])+1)
}
