package jq

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// fromCSV is the function fromcsv, or fromcsv(SEPARATOR): a text with a header row becomes an array of objects whose
// values are strings. Quoting is that of RFC 4180. Blank lines are left out. Nothing else is dropped: a column without a name is
// column_N, counted from 1; a name that was used before gets _2, _3, ...; fields beyond the header are columns without
// a name. Fields that a short row lacks are empty strings.
func fromCSV(v any, args []any) any {
	separator := ','
	if len(args) == 1 {
		s, ok := args[0].(string)
		runes := []rune(s)
		if !ok || len(runes) != 1 || strings.ContainsRune("\"\r\n\ufffd", runes[0]) {
			return errors.New("fromcsv: the separator must be one character, and neither a quote nor a line end")
		}
		separator = runes[0]
	}
	return table("fromcsv", v, separator)
}

// fromTSV is the function fromtsv: fromcsv for columns separated by tabs.
func fromTSV(v any, _ []any) any { return table("fromtsv", v, '\t') }

func table(name string, v any, separator rune) any {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%s needs a string, the whole text (use jq -R -s), but got: %s", name, texts.Cut(compact(v), maxShown))
	}
	r := &csvReader{text: strings.TrimPrefix(text, "\ufeff"), separator: separator, lazy: separator == '\t'}
	rows := []any{}
	var header, columns []string
	for {
		record, err := r.record()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if header == nil {
			header, columns = record, columnNames(record)
			continue
		}
		if len(record) > len(columns) {
			columns = columnNames(append(header, make([]string, len(record)-len(header))...))
		}
		row := make(map[string]any, len(columns))
		for i, column := range columns[:max(len(header), len(record))] {
			row[column] = ""
			if i < len(record) {
				row[column] = record[i]
			}
		}
		rows = append(rows, row)
	}
}

// columnNames makes the names of a header row distinct.
func columnNames(header []string) []string {
	taken := map[string]bool{}
	for _, name := range header {
		taken[name] = true
	}
	used := map[string]bool{}
	next := map[string]int{} // the first number that a name may be free with
	names := make([]string, len(header))
	for i, name := range header {
		if name == "" {
			name = "column_" + strconv.Itoa(i+1)
		}
		unique := name
		for used[unique] || unique != header[i] && taken[unique] {
			next[name] = max(next[name], 2)
			unique = name + "_" + strconv.Itoa(next[name])
			next[name]++
		}
		used[unique] = true
		names[i] = unique
	}
	return names
}
