package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/bench/quality"
	"github.com/mcsh-dev/mcsh/preview"
)

// qualityTitle begins the last part of the results.
const qualityTitle = "\n## What previews tell\n"

const qualityLegend = `
How much of the truth about data a reader learns from a text of so many characters, as the mean over the data sets of
bench/quality, in percent: which paths there are, their exact types, which keys are optional, all values where
they are few, and for how many leaves a filter can be written that fails on no record (answerable). The value sampler shows
elements from the head, the middle and the tail of arrays, and how much it leaves out; head -c is the beginning of the data.
None of the three claims what is not true. These figures are the same on every machine.

`

// qualityText compares what previews tell with what others do.
func qualityText() (string, error) {
	methods := quality.Methods(func(data string, chars int) (string, error) {
		res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: chars, Window: true})
		return res.Text, err
	})
	sets := quality.Sets()
	results, err := quality.Compare(sets, methods, quality.Budgets())
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(qualityTitle + qualityLegend)
	table := [][]string{{"characters", "text", "paths", "types", "optional", "values", "answerable"}}
	for _, r := range results {
		if n := len(r.Mean.False); n > 0 {
			return "", fmt.Errorf("%s at %d tells %d things that are not true: %q", r.Method, r.Chars, n, r.Mean.False[0])
		}
		m := r.Mean
		table = append(table, []string{
			fmt.Sprint(r.Chars), r.Method, percent(m.Paths), percent(m.Types), percent(m.Optional), percent(m.Enums), percent(m.Answerable),
		})
	}
	writeTable(&b, table)
	b.WriteString("\nAnswerable at 3000 characters, for each data set:\n\n")
	table = [][]string{{"data", "bytes"}}
	for _, m := range methods {
		table[0] = append(table[0], m.Name)
	}
	for _, s := range sets {
		if s.Text {
			continue
		}
		line := []string{s.Name, fmt.Sprint(len(s.Data))}
		for _, r := range results {
			if r.Chars == 3000 {
				line = append(line, percent(r.Sets[s.Name].Answerable))
			}
		}
		table = append(table, line)
	}
	writeTable(&b, table)
	return b.String(), nil
}

func percent(part float64) string { return fmt.Sprintf("%.0f", 100*part) }
