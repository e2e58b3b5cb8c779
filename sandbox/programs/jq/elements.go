package jq

import (
	"cmp"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// The forms of programs that can be taken apart. What stands for f is f only if it is a program by itself: of
// "map(.a) | map(.b)" it is none.
var (
	mapped   = lazy.Regexp(`(?s)^\s*(?:\.|map\((.*)\)|\[\s*\.\[\]\s*(?:\|(.*))?\])\s*$`)
	iterated = lazy.Regexp(`(?s)^\s*\.\[\]((?:\.[A-Za-z_]\w*)*)\s*(?:\|(.*))?$`)
)

// compileElements takes the program apart, if it can, for arrays too large to hold: f.each runs on every element by itself,
// and with f.inArray the results are the elements of one array again.
//
//	.    map(f)    [.[] | f]    .[] | f    .[].a.b | f
//
// This gives what the whole program gives as long as f sees nothing but its element and does not end the run: programs
// that read further inputs or halt are not taken apart.
func (f *Filter) compileElements() error {
	o := f.options
	if o.NullInput || o.Slurp || o.RawInput || o.Stream || f.callsAny("halt", "halt_error") {
		return nil
	}
	var each string
	m := mapped().FindStringSubmatch(o.Filter)
	if f.inArray = m != nil; f.inArray {
		each = cmp.Or(m[1]+m[2], ".")
	} else if m = iterated().FindStringSubmatch(o.Filter); m != nil {
		each = cmp.Or(m[1], ".") + "|" + cmp.Or(m[2], ".")
	}
	query, err := gojq.Parse(each)
	if m == nil || err != nil {
		return nil
	}
	query.FuncDefs = append(f.prelude(), query.FuncDefs...)
	f.each, err = f.compile(query, &run{})
	return err
}
