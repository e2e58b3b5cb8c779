package preview

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	csvRows     = 100 // rows that decide the separator
	wideRow     = 20  // columns with which less than three rows are enough
	maxColumns  = maxNodes
	maxCSVNames = 40 // characters of a name in a header row
)

type csvDialect struct {
	separator byte
	columns   int
	header    bool
}

// csvStats is the result of one pass over rows.
type csvStats struct {
	form       csvDialect
	root       *node // an object with a key for each column
	rows       int64 // without the header
	ragged     int64
	lastRagged bool  // the last row is ragged, as that of a sample may be
	raggedAt   int64 // the first ragged row, counted from 1 with the header
	raggedBy   int   // its number of fields
	spanning   int64 // rows with line feeds in fields
	open       bool  // the last quote is never closed
}

// sniffCSV looks for rows with equal numbers of fields.
func sniffCSV(head []byte, whole bool) (csvDialect, bool) {
	if len(head) > sniffBytes {
		head, whole = head[:sniffBytes], false
	}
	for _, separator := range []byte(",\t;|") {
		rows := sniffRows(head, separator, whole)
		if len(rows) == 0 || len(rows) < 3 && len(rows[0]) < wideRow {
			continue
		}
		form := csvDialect{separator: separator, columns: len(rows[0])}
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
	return csvDialect{}, false
}

func sniffRows(head []byte, separator byte, whole bool) (rows [][]string) {
	r := newCSVReader(bufio.NewReader(bytes.NewReader(head)), separator)
	for len(rows) < csvRows {
		var row []string
		if _, err := r.row(func(_ int, field []byte, _ int64) { row = append(row, string(field)) }); err != nil {
			break
		}
		rows = append(rows, row)
	}
	if !whole && len(rows) > 0 && len(rows) < csvRows {
		rows = rows[:len(rows)-1] // it may be cut
	}
	return rows
}

// looksLikeProse reports whether a space follows most separators, as in sentences and in tables for people.
func looksLikeProse(rows [][]string) bool {
	spaced, all := countFields(rows, 1, func(field string) bool { return strings.HasPrefix(field, " ") })
	return 2*spaced > all || strings.TrimSpace(rows[0][0]) == ""
}

// countFields counts the fields that fit and all fields, from a column on.
func countFields(rows [][]string, from int, fits func(string) bool) (fit, all int) {
	for _, row := range rows {
		for _, field := range row[from:] {
			all++
			if fits(field) {
				fit++
			}
		}
	}
	return fit, all
}

// isHeader reports whether the first row holds names: they are short, look unlike values, and seldom occur in their
// column. If names are missing or occur twice, a column of values below a name must prove it.
func isHeader(rows [][]string) bool {
	names := map[string]bool{}
	unique, proved := true, false
	for i, name := range rows[0] {
		again, values := column(rows[1:], i, name)
		proved = proved || values > 0 && 10*values > 9*(len(rows)-1)
		if name == "" || names[name] {
			unique = false
			continue
		}
		names[name] = true
		if runes(name) > maxCSVNames || strings.ContainsAny(name, "={}[]<>\n") || isCellValue(name) || 10*again > len(rows) {
			return false
		}
	}
	return unique || proved
}

// column counts the fields of a column that equal name, and those that look like values.
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

// isCellValue reports whether a text looks like a value and not like a name.
func isCellValue(s string) bool { return hasClass(s) || s[0] >= '0' && s[0] <= '9' }

func hasClass(s string) bool { return classify([]byte(s), int64(len(s)), s[len(s)-1]) != classText }

// hasWords reports whether many fields are phrases and not values.
func hasWords(rows [][]string) bool {
	phrases, all := countFields(rows, 0, func(field string) bool {
		return strings.Contains(strings.TrimSpace(field), " ") && !hasClass(field)
	})
	return 4*phrases > all
}

// readCSV profiles all rows of src.
func readCSV(src io.Reader, form csvDialect) (*csvStats, error) {
	c := &csvStats{form: form, root: &node{}}
	r := newCSVReader(bufio.NewReaderSize(src, maxLine), form.separator)
	header := make([]string, form.columns)
	var err error
	if form.header {
		header = nil
		_, err = r.row(func(_ int, field []byte, _ int64) {
			header = append(header, string(cutRunes(field, maxToken-utf8.UTFMax)))
		})
	}
	c.name(header)
	for err == nil {
		var fields int
		if fields, err = r.row(c.add); err == nil {
			c.endRow(fields)
		}
	}
	c.spanning, c.open = r.spanning, r.open
	c.root.kinds[kindObject] = c.rows
	for i := range c.root.keys {
		c.root.keys[i].present = c.rows
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return c, err
}

// name makes the columns and names them like fromcsv.
func (c *csvStats) name(header []string) {
	taken := map[string]bool{}
	for _, name := range header {
		taken[name] = true
	}
	used := map[string]bool{}
	for i, name := range header[:min(len(header), maxColumns)] {
		name = cmp.Or(name, fmt.Sprintf("column_%d", i+1))
		for n := 2; used[name] || name != header[i] && taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", header[i], n)
		}
		used[name] = true
		c.root.keys = append(c.root.keys, edge{name: name, n: &node{secret: isSecret(name)}})
	}
}

// add counts a field of the current row.
func (c *csvStats) add(column int, field []byte, size int64) {
	if column >= len(c.root.keys) {
		return
	}
	if size > int64(len(field)) {
		field = cutRunes(field, len(field)-utf8.UTFMax)
	}
	c.root.keys[column].n.addWord(field, size, 1)
}

func (c *csvStats) endRow(fields int) {
	c.rows++
	if c.lastRagged = fields != c.form.columns; !c.lastRagged {
		return
	}
	if c.ragged++; c.ragged == 1 {
		c.raggedAt, c.raggedBy = c.rows, fields
		if c.form.header {
			c.raggedAt++
		}
	}
}

// separators are the names of separators for people.
var separators = map[byte]string{',': "comma", '\t': "tab", ';': "semicolon", '|': "bar"}

func (c *csvStats) describe(in *source, o Options) description {
	rows, columns := texts.Count(c.rows, "row"), texts.Count(c.form.columns, "column")
	begin := "no header"
	if in.partial && c.lastRagged {
		c.ragged--
	}
	if c.form.header {
		begin = "header"
	}
	var all notes
	all.add(c.open && !in.partial, "A quote is never closed.")
	all.add(c.ragged > 0, "Rows with other numbers of fields: %d (the first: row %d has %d).", c.ragged, c.raggedAt, c.raggedBy)
	all.add(c.spanning > 0, "Rows that span lines: %d (awk, sort and grep break them).", c.spanning)
	all.add(c.form.header, "In jq all values are strings (tonumber).")
	return description{
		summary: "CSV, " + rows,
		header:  fmt.Sprintf("CSV (%s): %s and %s of %s, %s.", separators[c.form.separator], begin, rows, columns, in.size()),
		notes:   all,
		body:    func(budget int) string { return c.body(budget, o) },
	}
}

// body prints the columns, then a command to try if there is room.
func (c *csvStats) body(budget int, o Options) string {
	root := &item{n: c.root, depth: -1, table: true, more: c.form.columns - len(c.root.keys)}
	for i := range c.root.keys {
		e := &c.root.keys[i]
		seg := fmt.Sprintf("$%d", i+1)
		if c.form.header {
			seg += " " + segment(e.name)
		}
		root.kids = append(root.kids, &item{above: root, seg: seg, name: e.name, n: e.n, path: segment(e.name)})
	}
	text := renderTree(root, budget)
	if c.form.header {
		text += tryLine(c.try(), budget-runes(text), o)
	}
	return text
}

// try returns a jq command that selects some columns.
func (c *csvStats) try() string {
	keys := tryKeys(c.root)
	if len(keys) < 2 {
		return ""
	}
	from := map[byte]string{',': "fromcsv", '\t': "fromtsv"}[c.form.separator]
	from = cmp.Or(from, fmt.Sprintf("fromcsv(%q)", string(rune(c.form.separator))))
	return "jq -R -s -c '" + from + "[] | {" + strings.Join(keys, ",") + "}'"
}

// csvReader reads fields of rows (RFC 4180; a quote within an unquoted field stands for itself). Its memory does not grow
// with the size of fields and rows.
type csvReader struct {
	r         *bufio.Reader
	separator byte
	field     []byte // at most maxToken bytes of the field
	size      int64
	spans     bool  // the row has a line feed in a field
	spanning  int64 // rows that have one
	open      bool  // the data has ended inside quotes
}

func newCSVReader(r *bufio.Reader, separator byte) *csvReader {
	return &csvReader{r: r, separator: separator, field: make([]byte, 0, maxToken)}
}

// row reads the next row that is not blank, gives its fields to use, and returns their number. After the last row it
// returns io.EOF.
func (c *csvReader) row(use func(i int, field []byte, size int64)) (n int, err error) {
	for more := true; more; n++ {
		more, err = c.next()
		switch {
		case err != nil && (n == 0 && c.size == 0 || !errors.Is(err, io.EOF)):
			return 0, err
		case n == 0 && c.size == 0 && !more: // a blank line
			n, more = -1, true
			continue
		}
		use(n, c.field, c.size)
	}
	if c.spans {
		c.spanning++
	}
	c.spans = false
	return n, nil
}

func (c *csvReader) put(b byte) {
	if len(c.field) < maxToken {
		c.field = append(c.field, b)
	}
	c.size++
}

// next reads one field and reports whether the row goes on.
func (c *csvReader) next() (more bool, err error) {
	c.field, c.size = c.field[:0], 0
	quoted := false
	for start := true; ; start = false {
		b, err := c.r.ReadByte()
		switch {
		case err != nil:
			c.open = c.open || quoted
			return false, err
		case quoted && b == '"':
			if quoted = c.doubled(); quoted {
				c.put('"')
			}
		case quoted:
			c.spans = c.spans || b == '\n'
			c.put(b)
		case b == '"' && start:
			quoted = true
		case b == c.separator:
			return true, nil
		case b == '\n':
			if n := len(c.field); n > 0 && c.field[n-1] == '\r' && int64(n) == c.size {
				c.field, c.size = c.field[:n-1], c.size-1
			}
			return false, nil
		default:
			c.put(b)
		}
	}
}

// doubled reports whether a second quote follows one within quotes, and reads it.
func (c *csvReader) doubled() bool {
	b, err := c.r.ReadByte()
	if err != nil {
		return false // the next read returns the error
	}
	if b == '"' {
		return true
	}
	_ = c.r.UnreadByte() // after a successful read it cannot fail
	return false
}
