package preview

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	csvRows     = 100 // rows that the separator is guessed from
	wideRow     = 20  // columns from which on less than three rows are enough
	maxColumns  = maxNodes
	maxCSVNames = 40 // characters of a name in a header row
)

// csvForm is what sniffing finds.
type csvForm struct {
	separator byte
	columns   int
	header    bool
}

// csvReading is what one pass over rows found.
type csvReading struct {
	form   csvForm
	root   *node // an object with a key for each column
	names  []string
	rows   int64 // without the header
	ragged int64
	// lastRagged says that the last row is ragged, which is no wonder where the data was cut.
	lastRagged bool
	raggedAt   int64 // the first of them, counted from 1 with the header
	raggedBy   int
	spanning   int64
	open       bool // a quote is never closed
}

// sniffCSV looks for rows of as many fields each.
func sniffCSV(head []byte, whole bool) (csvForm, bool) {
	if len(head) > sniffBytes {
		head, whole = head[:sniffBytes], false
	}
	for _, separator := range []byte(",\t;|") {
		rows := sniffRows(head, separator, whole)
		if len(rows) == 0 {
			continue
		}
		form := csvForm{separator: separator, columns: len(rows[0])}
		if len(rows) < 3 && form.columns < wideRow {
			continue
		}
		same := 0
		for _, row := range rows {
			if len(row) == form.columns {
				same++
			}
		}
		if form.columns < 2 || 10*same < 9*len(rows) || looksLikeProse(rows) {
			continue
		}
		form.header = isHeader(rows)
		if form.header || separator == '\t' || form.columns > 2 && !hasWords(rows) {
			return form, true
		}
	}
	return csvForm{}, false
}

func sniffRows(head []byte, separator byte, whole bool) (rows [][]string) {
	r := newCSVReader(bufio.NewReader(bytes.NewReader(head)), separator)
	var row []string
	for len(rows) < csvRows {
		end, err := r.next()
		if end == csvDone {
			break
		}
		row = append(row, string(r.field))
		if end == csvRow {
			if len(row) > 1 || row[0] != "" {
				rows = append(rows, row)
			}
			row = nil
		}
		if err != nil {
			break
		}
	}
	if !whole && len(rows) > 0 && len(rows) < csvRows {
		rows = rows[:len(rows)-1] // it may be cut
	}
	return rows
}

// looksLikeProse reports whether most separators are followed by a space, as in sentences and in tables for people.
func looksLikeProse(rows [][]string) bool {
	spaced, all := 0, 0
	for _, row := range rows {
		for _, field := range row[1:] {
			all++
			if strings.HasPrefix(field, " ") {
				spaced++
			}
		}
	}
	return 2*spaced > all || strings.TrimSpace(rows[0][0]) == ""
}

// isHeader reports whether the first row has names: short ones that are no values, not those of the column either. Where
// names are missing or come twice, a column of values below a name must prove it.
func isHeader(rows [][]string) bool {
	names := map[string]bool{}
	proved := true
	for i, name := range rows[0] {
		if name == "" || names[name] {
			proved = false
			continue
		}
		if runes(name) > maxCSVNames || strings.ContainsAny(name, "={}[]<>\n") || isCellValue(name) {
			return false
		}
		names[name] = true
		if again, _ := column(rows[1:], i, name); 10*again > len(rows) {
			return false
		}
	}
	for i := 0; i < len(rows[0]) && !proved; i++ {
		_, values := column(rows[1:], i, "")
		proved = values > 0 && 10*values > 9*(len(rows)-1)
	}
	return proved
}

// column counts the fields of a column that are equal to name, and those that are values rather than names.
func column(rows [][]string, i int, name string) (equal, values int) {
	for _, row := range rows {
		switch {
		case i >= len(row):
		case row[i] == name:
			equal++
		case row[i] != "" && isCellValue(row[i]):
			values++
		}
	}
	return equal, values
}

// isCellValue reports whether a text is rather a value than a name.
func isCellValue(s string) bool {
	c := classify([]byte(s), int64(len(s)), s[len(s)-1])
	return c != classText || s[0] >= '0' && s[0] <= '9'
}

// hasWords reports whether fields are words of a text rather than values.
func hasWords(rows [][]string) bool {
	wordy, all := 0, 0
	for _, row := range rows {
		for _, field := range row {
			all++
			if strings.Contains(strings.TrimSpace(field), " ") && classify([]byte(field), int64(len(field)), field[len(field)-1]) == classText {
				wordy++
			}
		}
	}
	return 4*wordy > all
}

// readCSV profiles all rows of src.
func readCSV(src io.Reader, form csvForm) (*csvReading, error) {
	c := &csvReading{form: form, root: &node{}}
	r := newCSVReader(bufio.NewReaderSize(src, maxLine), form.separator)
	if !form.header {
		c.name(make([]string, form.columns))
	}
	var header []string
	for i, row := 0, int64(1); ; i++ {
		end, err := r.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if end == csvDone {
			break
		}
		switch {
		case i == 0 && end == csvRow && r.size == 0: // a blank line
			i = -1
			continue
		case form.header && c.names == nil:
			header = append(header, string(cutRunes(r.field, maxToken-utf8.UTFMax)))
		default:
			c.add(i, r)
		}
		if end == csvRow {
			if form.header && c.names == nil {
				c.name(header)
			} else {
				c.endRow(i+1, row)
			}
			c.spanning += r.spanned()
			i, row = -1, row+1
		}
	}
	c.open = r.open
	c.root.kinds[kindObject] = c.rows
	for i := range c.root.keys {
		c.root.keys[i].present = c.rows
	}
	return c, nil
}

// name makes the columns, with the names that fromcsv gives them.
func (c *csvReading) name(header []string) {
	taken := map[string]bool{}
	for _, name := range header {
		taken[name] = true
	}
	used := map[string]bool{}
	c.names = []string{}
	for i, name := range header {
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		for n := 2; used[name] || name != header[i] && taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", header[i], n)
		}
		used[name] = true
		if len(c.names) == maxColumns {
			return
		}
		c.names = append(c.names, name)
		c.root.addEdge(name, &node{secret: isSecret(name)})
	}
}

// add counts a field of the current row.
func (c *csvReading) add(column int, r *csvReader) {
	if column >= len(c.root.keys) {
		return
	}
	n := c.root.keys[column].n
	field := r.field
	if r.size > int64(len(field)) {
		field = cutRunes(field, len(field)-utf8.UTFMax)
	}
	if number := len(field) <= maxNumber && isJSONNumber(field); number && int64(len(field)) == r.size {
		n.addNumber(&token{raw: field, size: r.size, float: !isInteger(field)})
		return
	}
	last := byte(0)
	if len(field) > 0 && int64(len(field)) == r.size {
		last = field[len(field)-1]
	}
	n.addString(field, r.size, last)
}

func (c *csvReading) endRow(fields int, row int64) {
	c.rows++
	want := c.form.columns
	if c.lastRagged = fields != want; !c.lastRagged {
		return
	}
	if c.ragged++; c.ragged == 1 {
		c.raggedAt, c.raggedBy = row, fields
	}
}

func (c *csvReading) summary() string { return "CSV, " + count(c.rows, "row") }

// separators names them for people.
var separators = map[byte]string{',': "comma", '\t': "tab", ';': "semicolon", '|': "bar"}

func (c *csvReading) header(in *source) (string, []string) {
	begin := "no header"
	if c.form.header {
		begin = "header"
	}
	main := fmt.Sprintf("CSV (%s): %s and %s of %s, %s.", separators[c.form.separator], begin, count(c.rows, "row"), count(int64(c.form.columns), "column"), in.size())
	var notes []string
	if in.partial && c.lastRagged {
		c.ragged--
	}
	if c.open && !in.partial {
		notes = append(notes, "A quote is never closed.")
	}
	if c.ragged > 0 {
		notes = append(notes, fmt.Sprintf("Rows with other numbers of fields: %d (the first: row %d has %d).", c.ragged, c.raggedAt, c.raggedBy))
	}
	if c.spanning > 0 {
		notes = append(notes, fmt.Sprintf("Rows that span lines: %d (awk, sort and grep break them).", c.spanning))
	}
	if c.form.header {
		notes = append(notes, "In jq all values are strings (tonumber).")
	}
	return main, notes
}

// body prints a line for each column, and what helps with the next step.
func (c *csvReading) body(budget int, o Options) string {
	root := &item{n: c.root, depth: -1, table: true, more: c.form.columns - len(c.root.keys)}
	for i := range c.root.keys {
		e := &c.root.keys[i]
		seg := fmt.Sprintf("$%d", i+1)
		if c.form.header {
			seg += " " + segment(e.name)
		}
		root.kids = append(root.kids, &item{seg: seg, name: e.name, n: e.n, path: segment(e.name)})
	}
	text := renderTree(root, budget)
	if c.form.header {
		text += fitLine(c.try(), budget-runes(text), o)
	}
	return text
}

// try is a jq command that takes some columns.
func (c *csvReading) try() string {
	keys := tryKeys(c.root)
	if len(keys) < 2 {
		return ""
	}
	from := map[byte]string{',': "fromcsv", '\t': "fromtsv"}[c.form.separator]
	if from == "" {
		from = fmt.Sprintf("fromcsv(%q)", string(rune(c.form.separator)))
	}
	return "jq -R -s -c '" + from + "[] | {" + strings.Join(keys, ",") + "}'"
}
