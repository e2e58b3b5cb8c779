package jq

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// fromCSV is the function fromcsv, or fromcsv(SEPARATOR): a text with a header row becomes an array of objects whose
// values are strings. Quoting is that of RFC 4180; within a quoted field CR LF becomes LF, and a quote inside of a
// field that is not quoted stands for itself. Blank lines are left out. Nothing is dropped: a column without a name is
// column_N, counted from 1; a name that was used before gets _2, _3, ...; fields beyond the header are columns without
// a name. Fields that a short row lacks are empty strings.
func fromCSV(v any, args []any) any {
	separator := ','
	if len(args) == 1 {
		s, ok := args[0].(string)
		runes := []rune(s)
		if !ok || len(runes) != 1 {
			return errors.New("fromcsv: the separator must be one character")
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
		return fmt.Errorf("%s needs a string, the whole text (use jq -R -s), but got: %s", name, cutText(compact(v)))
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.Comma = separator
	r.FieldsPerRecord = -1
	r.LazyQuotes = separator == '\t'
	rows := []any{}
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return rows
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	columns := columnNames(header)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
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
	names := make([]string, len(header))
	for i, name := range header {
		if name == "" {
			name = "column_" + strconv.Itoa(i+1)
		}
		unique := name
		for n := 2; used[unique] || unique != header[i] && taken[unique]; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		used[unique] = true
		names[i] = unique
	}
	return names
}
