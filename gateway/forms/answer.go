package forms

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/mail"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"
)

// A rule says which schemas the fields of a type have, and which answers.
type rule struct {
	form   func(s *schema) error
	answer func(s *schema, value any) error
}

// rules are the rules of the types.
var rules = map[string]rule{
	"string":  {stringForm, stringAnswer},
	"number":  {plainForm, numberAnswer},
	"integer": {plainForm, integerAnswer},
	"boolean": {plainForm, booleanAnswer},
	"array":   {arrayForm, arrayAnswer},
}

// formats are the formats of strings.
var formats = map[string]func(text string) error{
	"email": func(text string) error {
		a, err := mail.ParseAddress(text)
		if err == nil && a.Address != text {
			err = errors.New("it has a name beside the address")
		}
		return err
	},
	"uri": func(text string) error {
		u, err := url.Parse(text)
		if err == nil && !u.IsAbs() {
			err = errors.New("it has no scheme")
		}
		return err
	},
	"date":      func(text string) error { _, err := time.Parse(time.DateOnly, text); return err },
	"date-time": func(text string) error { _, err := time.Parse(time.RFC3339, text); return err },
}

// Check checks the answers to a form, and returns them without those that are null. The error does not quote them.
func (f *Form) Check(content json.RawMessage) (json.RawMessage, error) {
	value, err := decode(content)
	answers, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, errors.New("the answers are not a JSON object")
	}
	left := len(answers)
	for _, fd := range f.fields {
		value, given := answers[fd.name]
		if given {
			left--
		}
		switch {
		case value == nil && fd.required:
			return nil, fmt.Errorf("the field %q has no answer", fd.name)
		case value == nil:
			delete(answers, fd.name)
			continue
		}
		if err := rules[fd.schema.Type].answer(fd.schema, value); err != nil {
			return nil, fmt.Errorf("the field %q: %w", fd.name, err)
		}
	}
	if left > 0 {
		return nil, errors.New("there are answers to fields that the form does not have")
	}
	return json.Marshal(answers)
}

func plainForm(s *schema) error {
	if s.Format != "" || s.options() != nil || s.Items != nil {
		return fmt.Errorf("format and choices are not for the type %s", s.Type)
	}
	return nil
}

func stringForm(s *schema) error {
	switch options := s.options(); {
	case s.Enum != nil && s.OneOf != nil || s.Items != nil:
		return errors.New("it has choices in several forms")
	case options != nil:
		return choicesForm(options)
	case s.Format != "" && formats[s.Format] == nil:
		return fmt.Errorf("the formats are email, uri, date and date-time, not %.100q", s.Format)
	}
	return nil
}

func arrayForm(s *schema) error {
	if s.Format != "" || s.options() != nil || s.choices().options() == nil {
		return errors.New("an array has items that are choices")
	}
	return choicesForm(s.choices().options())
}

func choicesForm(options []string) error {
	if len(options) == 0 || len(options) > mostOptions {
		return fmt.Errorf("it has %d choices; from 1 to %d are possible", len(options), mostOptions)
	}
	return nil
}

func stringAnswer(s *schema, value any) error {
	text, ok := value.(string)
	if !ok {
		return errors.New("the answer is not a string")
	}
	if options := s.options(); options != nil && !slices.Contains(options, text) {
		return errors.New("the answer is none of the choices")
	}
	if err := within("characters", utf8.RuneCountInString(text), s.MinLength, s.MaxLength); err != nil {
		return err
	}
	if check := formats[s.Format]; check != nil && check(text) != nil {
		return fmt.Errorf("the answer does not have the format %s", s.Format)
	}
	return nil
}

// within checks a length.
func within(of string, n int, least, most *int) error {
	if least != nil && n < *least || most != nil && n > *most {
		return fmt.Errorf("the answer has too few or too many %s: %d", of, n)
	}
	return nil
}

func numberAnswer(s *schema, value any) error {
	n, ok := rational(value)
	if !ok {
		return errors.New("the answer is not a number")
	}
	for _, bound := range []struct {
		limit *json.Number
		sign  int
	}{{s.Minimum, -1}, {s.Maximum, 1}} {
		if bound.limit == nil {
			continue
		}
		if limit, ok := rational(*bound.limit); ok && n.Cmp(limit) == bound.sign {
			return errors.New("the answer is out of the range")
		}
	}
	return nil
}

func integerAnswer(s *schema, value any) error {
	if n, ok := rational(value); !ok || !n.IsInt() {
		return errors.New("the answer is not an integer")
	}
	return numberAnswer(s, value)
}

// mostDigits and mostPower bound the text of a number and its power of ten: other numbers take much memory to compare.
const (
	mostDigits = 40
	mostPower  = 1e40
)

// rational returns the value of a number.
func rational(value any) (*big.Rat, bool) {
	n, ok := value.(json.Number)
	f, err := n.Float64()
	size := math.Abs(f)
	switch {
	case !ok || err != nil || len(n) > mostDigits || size > mostPower || size > 0 && size < 1/mostPower:
		return nil, false
	case size == 0: // also of 1e-999999999
		return new(big.Rat), true
	}
	return new(big.Rat).SetString(string(n))
}

func booleanAnswer(_ *schema, value any) error {
	if _, ok := value.(bool); !ok {
		return errors.New("the answer is neither true nor false")
	}
	return nil
}

func arrayAnswer(s *schema, value any) error {
	list, ok := value.([]any)
	if !ok {
		return errors.New("the answer is not a list of choices")
	}
	options := s.choices().options()
	for _, v := range list {
		if text, ok := v.(string); !ok || !slices.Contains(options, text) {
			return errors.New("the answer is none of the choices")
		}
	}
	return within("choices", len(list), s.MinItems, s.MaxItems)
}
