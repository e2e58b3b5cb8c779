package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/stages"
)

// The exit statuses.
const (
	exitOK          = 0
	exitUsage       = 1 // the command line is wrong
	exitConfig      = 2 // a configuration file or the machine's set-up is wrong
	exitAuth        = 3 // a server wants a sign-in, or has refused one
	exitUnreachable = 4 // a server cannot be reached
	exitFailed      = 5 // the pipeline or a tool failed
	exitTimeout     = 124
	exitInterrupted = 130
)

// exitCodes says which exit status an error of a pipeline means, where it is not exitFailed.
var exitCodes = map[stages.Code]int{
	stages.ServerUnavailable: exitUnreachable,
	stages.Timeout:           exitTimeout,
	stages.Cancelled:         exitInterrupted,
}

// A failure is the end of a command that did not succeed.
type failure struct {
	status int
	err    error  // what, where and why
	hint   string // what to do next, or empty
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usageError(hint, format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...), hint}
}

func configError(hint string, err error) error { return &failure{exitConfig, err, hint} }

// A toldStatus is the end of a command that has said itself what is wrong.
type toldStatus int

func (s toldStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// A planError is everything that is wrong with a pipeline that was not run.
type planError []*stages.Error

func (p planError) Error() string { return strings.TrimSuffix(gateway.PlanErrorText(p), "\n") }

// status is that of the mistakes if they agree.
func (p planError) status() int {
	status := exitFailed
	for i, e := range p {
		code := statusOf(e)
		if i > 0 && code != status {
			return exitFailed
		}
		status = code
	}
	return status
}

// report tells a person, or with --json a program, what went wrong, and returns the exit status. What cannot be told on
// standard output is told on standard error.
func (p *program) report(err error) int {
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[toldStatus](err); ok {
		return int(status)
	}
	told, status := explain(err)
	if p.json {
		werr := writeJSON(p.stdout, told)
		if werr == nil {
			return status
		}
		status = exitFailed
		if errors.Is(err, syscall.EPIPE) {
			return status // the reader has left, which is all that is wrong
		}
	}
	fmt.Fprint(p.stderr, gateway.Plain(told.text, true)) // servers' words are in it, which may hold commands for terminals
	return status
}

// A told error is an error in the forms that are printed.
type told struct {
	Errors []errorJSON `json:"errors"`
	Report *reportJSON `json:"report,omitempty"` // of a run that failed
	text   string      // for people
}

// errorJSON is an error as --json prints it.
type errorJSON struct {
	Code    stages.Code     `json:"code,omitempty"`
	Message string          `json:"message"`
	Hint    string          `json:"hint,omitempty"`
	Fix     json.RawMessage `json:"fix,omitempty"`
	Stage   stages.Place    `json:"stage,omitempty"`
	Label   string          `json:"label,omitempty"`
	Field   string          `json:"field,omitempty"`
	Item    int             `json:"item,omitempty"`
	Items   int             `json:"items,omitempty"`
	Done    int             `json:"done,omitempty"`
}

func errorOf(e *stages.Error) errorJSON {
	return errorJSON{e.Code, e.Msg, e.Hint, e.Fix, e.Place, e.Label, e.Field, e.Item, e.Items, e.Done}
}

// explain sorts an error into what is told of it and the exit status.
func explain(err error) (told, int) {
	var ran *runError
	var plan planError
	var stage *stages.Error
	var f *failure
	switch {
	case errors.As(err, &ran):
		t, status := explain(ran.err)
		t.Report = &ran.report
		if errors.As(ran.err, &stage) {
			t.text = gateway.ErrorText(stage) // also where no single stage failed: agents see it in this form
		}
		return t, status
	case errors.As(err, &plan):
		t := told{text: plan.Error() + "\n"}
		for _, e := range plan {
			t.Errors = append(t.Errors, errorOf(e))
		}
		return t, plan.status()
	case errors.As(err, &f):
		return told{text: lines(f.Error(), f.hint), Errors: []errorJSON{{Message: f.Error(), Hint: f.hint}}}, f.status
	case errors.As(err, &stage):
		t := told{Errors: []errorJSON{errorOf(stage)}, text: gateway.ErrorText(stage)}
		if stage.Place == "" {
			t.text = lines(stage.Msg, stage.Hint)
		}
		return t, statusOf(stage)
	case errors.Is(err, context.Canceled):
		return told{text: "error: interrupted\n", Errors: []errorJSON{{Code: stages.Cancelled, Message: "interrupted"}}}, exitInterrupted
	}
	return told{text: lines(err.Error(), "mcsh --help shows what there is"), Errors: []errorJSON{{Message: err.Error()}}}, exitUsage
}

func statusOf(e *stages.Error) int {
	var refused interface{ NoSignIn() bool }
	if errors.As(e, &refused) && refused.NoSignIn() {
		return exitAuth
	}
	if status, ok := exitCodes[e.Code]; ok {
		return status
	}
	return exitFailed
}

// lines is the form of an error outside of pipelines.
func lines(message, hint string) string {
	text := "error: " + strings.ReplaceAll(message, "\n", "\nerror: ") + "\n"
	if hint != "" {
		text += "hint: " + strings.ReplaceAll(hint, "\n", "\n      ") + "\n"
	}
	return text
}

// writeJSON writes v on one line.
func writeJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
