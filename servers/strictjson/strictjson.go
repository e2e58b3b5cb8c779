// Package strictjson decodes one JSON object into a struct. It refuses unknown, repeated and differently capitalised
// names, values of the wrong type, and anything after the object. Its messages are meant for the person or agent who
// wrote the object. It knows nothing of tools or configuration.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Decode decodes data into the struct that v points to. The struct's fields are matched by the names in their json
// tags, exactly; fields without one are not settable. A member that is null counts as absent; empty data and null count
// as {}. Integers may be written as 3.0 or 3e0. A time.Duration is a string such as "1.5s" or a number of seconds, which
// may be a string too.
// A required member must be present. In messages, what is the word for a member, such as "argument" or "option".
func Decode(what string, data []byte, v any, required ...string) error {
	return DecodeFields(what, data, v, fieldsOf(reflect.TypeOf(v).Elem()), required...)
}

// DecodeFields is [Decode] for a caller that decodes often, and keeps what [Fields] returns for the struct.
func DecodeFields(what string, data []byte, v any, fields []Field, required ...string) error {
	members, err := members(what, data)
	if err != nil {
		return err
	}
	if err := checkNames(what, members, fields, required); err != nil {
		return err
	}
	s := reflect.ValueOf(v).Elem()
	for _, m := range members {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == m.Name })
		if string(m.Value) == "null" {
			continue
		}
		if err := assign(s.FieldByIndex(fields[i].index), m.Value); err != nil {
			return fmt.Errorf("%s %q: %w", what, m.Name, err)
		}
	}
	return nil
}

// checkNames returns an error that names the first missing member and the first unknown one: often one is the other, mistyped.
func checkNames(what string, members []exactjson.Member, fields []Field, required []string) error {
	var faults []string
	for _, name := range required {
		if !slices.ContainsFunc(members, func(m exactjson.Member) bool { return m.Name == name && string(m.Value) != "null" }) {
			faults = append(faults, fmt.Sprintf("%s %q is missing", what, name))
			break
		}
	}
	for _, m := range members {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == m.Name }) {
			faults = append(faults, fmt.Sprintf("unknown %s %q%s", what, texts.Cut(m.Name, maxShown), suggest(m.Name, fields)))
			break
		}
	}
	if faults == nil {
		return nil
	}
	return errors.New(strings.Join(faults, ", and "))
}

// Take returns the required member name of the object data, a string, and the object without it. See Decode for what.
func Take(what string, data []byte, name string) (value string, rest []byte, err error) {
	list, err := members(what, data)
	if err != nil {
		return "", nil, err
	}
	others := map[string]json.RawMessage{}
	for _, m := range list {
		others[m.Name] = m.Value
	}
	raw, ok := others[name]
	if !ok || string(raw) == "null" {
		return "", nil, fmt.Errorf("%s %q is missing", what, name)
	}
	if err := assign(reflect.ValueOf(&value).Elem(), raw); err != nil {
		return "", nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	delete(others, name)
	rest, err = json.Marshal(others)
	return value, rest, err
}

// members returns the members of the object data in their order. A repeated name is an error.
func members(what string, data []byte) ([]exactjson.Member, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	list, err := exactjson.List(data)
	switch {
	case errors.Is(err, exactjson.ErrNoObject):
		return nil, fmt.Errorf("want a JSON object of %ss, got %s", what, texts.Cut(string(data), maxShown))
	case err != nil:
		return nil, fmt.Errorf("reading %ss: %w", what, err)
	}
	seen := map[string]bool{}
	for _, m := range list {
		if seen[m.Name] {
			return nil, fmt.Errorf("%s %q is given twice", what, texts.Cut(m.Name, maxShown))
		}
		seen[m.Name] = true
	}
	return list, nil
}

// A Field is a member that Decode accepts for a struct.
type Field struct {
	Name  string
	Usage string // the tag "usage": one line for people
	Type  reflect.Type

	index []int
}

// Fields describes the members that Decode accepts for the struct S, in their order.
func Fields[S any]() []Field { return fieldsOf(reflect.TypeFor[S]()) }

func fieldsOf(s reflect.Type) (list []Field) {
	for _, f := range reflect.VisibleFields(s) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			list = append(list, Field{name, f.Tag.Get("usage"), f.Type, f.Index})
		}
	}
	return list
}

// assign decodes raw, which is not null, into v.
func assign(v reflect.Value, raw json.RawMessage) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := assign(p.Elem(), raw); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	got := texts.Cut(string(raw), maxShown)
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := duration(raw)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
	case v.CanInt():
		n, ok := integer(raw)
		if !ok || v.OverflowInt(n) {
			return fmt.Errorf("want an integer, got %s", got)
		}
		v.SetInt(n)
	default:
		err := json.Unmarshal(raw, v.Addr().Interface())
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("want %s, got %s", describe(v.Type()), got)
		}
		return err
	}
	return nil
}

// integer reads a whole JSON number in any notation.
func integer(raw json.RawMessage) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	const exact = 1 << 53 // a float64 cannot hold all larger integers
	f, err := strconv.ParseFloat(string(raw), 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) <= exact
}

func duration(raw json.RawMessage) (time.Duration, error) {
	text := string(raw)
	if json.Unmarshal(raw, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < math.MaxInt64/float64(time.Second) {
		return time.Duration(s * float64(time.Second)), nil
	}
	return 0, fmt.Errorf(`want a duration such as "1.5s" or a number of seconds, got %s`, texts.Cut(string(raw), maxShown))
}

// describe names the JSON type of a Go type.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[json.RawMessage]() {
			return "an array"
		}
		return "an array whose elements are each " + describe(t.Elem())
	case reflect.Map:
		return "an object whose values are each " + describe(t.Elem())
	case reflect.Struct:
		return "an object"
	}
	return "another type"
}

// maxShown is the number of bytes that a message shows of a value.
const maxShown = 60

// suggest ends the message about an unknown name: the nearest known one, or all of them.
func suggest(name string, fields []Field) string {
	if len(fields) == 0 {
		return "; there are none"
	}
	var known []string
	for _, f := range fields {
		known = append(known, f.Name)
	}
	all := "; known: " + strings.Join(known, ", ")
	if near := nearest.Name(name, known); near != "" {
		return fmt.Sprintf(", did you mean %q%s", near, all)
	}
	return all
}
