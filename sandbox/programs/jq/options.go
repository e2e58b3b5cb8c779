// Package jq runs jq programs over a stream of JSON. The language is gojq's; reading, writing, the options of the
// command line and the reading of large arrays element by element are done here. It reads and writes nothing but
// the streams that it is given: programs have no files, modules or environment.
package jq

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Options are those of the command line. The zero value prints compactly and has an empty filter, which is a mistake:
// "." passes everything on.
type Options struct {
	Filter string

	NullInput bool // run once, with null; input and inputs read
	Slurp     bool // all documents as one array
	RawInput  bool // lines of text, not JSON; with Slurp the whole text
	Stream    bool // the documents' events, [path, leaf] and [path]
	Seq       bool // documents begin with the record separator, U+001E

	Raw    bool   // strings without quotes
	Join   bool   // like Raw, and no newline after an output
	Raw0   bool   // like Raw, and NUL instead of a newline
	ASCII  bool   // escape everything beyond ASCII
	Indent string // of each level; empty for everything on one line

	ExitStatus bool // 1 if the last output was false or null, 4 if there was none

	Named      []Var // $NAME and $ARGS.named; of two of one name the first counts
	Positional []Var // $ARGS.positional
}

// A Var is a value that a program is given.
type Var struct {
	Name string // empty for a positional one
	Text string
	JSON bool // Text is a JSON value, not a string

	// Input says that Text names an input, as @NAME, which Load reads: a string, or with JSON the array of its values.
	Input bool
}

// IsName says whether a text can stand behind the $ of a variable.
func IsName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return s != "" && strings.Trim(s, letters+"0123456789") == "" && strings.ContainsAny(s[:1], letters)
}

// Check returns what is wrong with v.
func (v Var) Check() error {
	if v.Name != "" && !IsName(v.Name) {
		return errors.New("the name must consist of letters, digits and _")
	}
	_, err := v.value(nil)
	return err
}

// value returns the value of v: null, if it is an input and open is nil.
func (v Var) value(open func(name string) (io.Reader, error)) (any, error) {
	switch {
	case v.Input && open == nil:
		return nil, nil
	case v.Input:
		r, err := open(strings.TrimPrefix(v.Text, "@"))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", v.Text, err)
		}
		x, err := Options{Slurp: true, RawInput: !v.JSON}.source(r).next()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", v.Text, err)
		}
		return x, nil
	case !v.JSON:
		return v.Text, nil
	}
	d := newDecoder(strings.NewReader(v.Text))
	x, err := d.next()
	if err != nil {
		return nil, errors.New("it is not a JSON value")
	}
	if _, err := d.next(); !isEOF(err) {
		return nil, errors.New("it is more than one JSON value")
	}
	return x, nil
}

// variables returns the names and values that a program sees. A nil open leaves inputs out.
func (o Options) variables(open func(name string) (io.Reader, error)) (names []string, values []any, err error) {
	named, positional := map[string]any{}, []any{}
	for _, v := range o.Named {
		if _, ok := named[v.Name]; ok {
			continue
		}
		x, err := v.value(open)
		if err != nil {
			return nil, nil, err
		}
		named[v.Name] = x
		names, values = append(names, "$"+v.Name), append(values, x)
	}
	for _, v := range o.Positional {
		x, err := v.value(open)
		if err != nil {
			return nil, nil, err
		}
		positional = append(positional, x)
	}
	args := map[string]any{"named": named, "positional": positional}
	return append(names, "$ARGS"), append(values, args), nil
}
