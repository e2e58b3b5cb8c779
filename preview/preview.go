package preview

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Options say how much may be printed. The zero value works.
type Options struct {
	// Chars is the budget in Unicode code points, markers included. 0 means 3000, or 1200 for a window; below 0
	// nothing is printed. More than 1,000,000 is taken for that.
	Chars int
	// Window says that the data also flows on, so that its shape is wanted: data that fits is printed verbatim only
	// up to 400 characters.
	Window bool
	// Check reports whether a jq program can be compiled. A program that is proposed as the next step is printed only
	// if it can; without a Check it is printed as it is.
	Check func(program string) bool
}

const (
	defaultChars  = 3000
	windowChars   = 1200
	windowWhole   = 400 // characters of data that a window prints verbatim
	maxChars      = 1_000_000
	markedChars   = 120 // the budget from which on there are markers
	opening       = "=== PREVIEW (not valid JSON: shape of the data) ===\n"
	closing       = "=== END PREVIEW ===\n"
	byteOrderMark = "\xef\xbb\xbf"
)

func (o Options) chars() int {
	switch {
	case o.Chars < 0:
		return 0
	case o.Chars > 0:
		return min(o.Chars, maxChars)
	case o.Window:
		return windowChars
	}
	return defaultChars
}

// Result is a preview.
type Result struct {
	Text     string // at most Chars code points, valid UTF-8, ends in a newline when there is room
	Summary  string // what the data is in a few words: "30 JSON documents", "text, 12 lines", "binary (gzip)"
	Bytes    int64  // bytes read
	Verbatim bool   // Text is the data itself
	Partial  bool   // the data was cut: the reader ended with io.ErrUnexpectedEOF
}

// Preview reads r to its end and describes it. Whatever the data is, the only errors are those of r and of ctx.
// Data that fits into the budget is returned as it is.
func Preview(ctx context.Context, r io.Reader, o Options) (Result, error) {
	chars := o.chars()
	in := &source{ctx: ctx, r: r}
	head, whole, err := in.head(max(sniffBytes, chars*utf8.UTFMax))
	if err != nil {
		return Result{}, fmt.Errorf("reading the data to preview: %w", err)
	}
	about, err := describe(in, head, whole, o)
	if err != nil {
		return Result{}, fmt.Errorf("reading the data to preview: %w", err)
	}
	res := Result{Summary: about.summary, Bytes: in.bytes, Partial: in.partial}
	fits := chars
	if o.Window {
		fits = min(fits, windowWhole)
	}
	if whole && !in.partial && about.text && utf8.Valid(head) && utf8.RuneCount(head) <= fits {
		res.Text, res.Verbatim = endLine(string(head), chars), true
		return res, nil
	}
	res.Text = about.print(chars)
	return res, nil
}

// description is what data turned out to be.
type description struct {
	summary string
	text    bool // it may be printed as it is
	header  string
	notes   []string                // sentences behind the header, the most important first
	body    func(budget int) string // prints at most so many characters; nil: nothing
}

// describe reads the rest of in behind head.
func describe(in *source, head []byte, whole bool, o Options) (description, error) {
	if order := utf16Order(head); order != nil {
		return describeUTF16(in, head, order, o)
	}
	name := binaryName(head)
	if name == unknownFormat {
		if _, _, ok := sniffJSON(head, whole); ok {
			name = "" // zeros in strings
		}
	}
	if blank := len(bytes.TrimSpace(head)) == 0; name != "" || blank && whole {
		if err := in.drain(); err != nil {
			return description{}, err
		}
		if name != "" {
			return describeBinary(name, in), nil
		}
		return describeEmpty(in), nil
	}
	data, marked := bytes.CutPrefix(head, []byte(byteOrderMark))
	about, err := describeText(in, data, whole, o)
	if marked && err == nil {
		about.notes = append(about.notes, "Begins with a byte order mark.")
	}
	return about, err
}

// describeUTF16 describes what the text is as UTF-8.
func describeUTF16(in *source, head []byte, order binary.ByteOrder, o Options) (description, error) {
	text := &source{ctx: in.ctx, of: in, r: newUTF16Reader(io.MultiReader(bytes.NewReader(head), in), order)}
	head, whole, err := text.head(max(sniffBytes, o.chars()*utf8.UTFMax))
	if err != nil {
		return description{}, err
	}
	about, err := describe(text, head, whole, o)
	about.text = false
	about.notes = append([]string{"UTF-16; jq and the others read UTF-8 only."}, about.notes...)
	return about, err
}

func describeText(in *source, data []byte, whole bool, o Options) (description, error) {
	if at, lines, ok := sniffJSON(data, whole); ok {
		seq := data[at] == 0x1e
		j, err := readJSON(io.MultiReader(bytes.NewReader(data[at:]), in), lines, seq)
		if err == nil {
			err = in.drain()
		}
		if err != nil {
			return description{}, err
		}
		header, notes := j.header(in)
		body := func(budget int) string { return j.body(budget, data[at:], o) }
		return description{summary: j.summary(in), text: true, header: header, notes: notes, body: body}, nil
	}
	if form, ok := sniffCSV(data, whole); ok {
		c, err := readCSV(io.MultiReader(bytes.NewReader(data), in), form)
		if err != nil {
			return description{}, err
		}
		header, notes := c.header(in)
		body := func(budget int) string { return c.body(budget, o) }
		return description{summary: c.summary(), text: true, header: header, notes: notes, body: body}, nil
	}
	src := io.MultiReader(bytes.NewReader(data), in)
	returns := bytes.IndexByte(data, '\r') >= 0 && bytes.IndexByte(data, '\n') < 0
	if returns {
		src = carriageReturns{src}
	}
	t, err := readText(src)
	if err != nil {
		return description{}, err
	}
	if about, ok := describeBase64(data, in); ok {
		about.text = true
		return about, nil
	}
	var hint string
	t.kind, hint = textKind(data)
	if t.note = cmp.Or(whyNotJSON(data), hint); t.note != hint {
		t.kind = "TEXT"
	}
	if returns {
		t.note = "Lines end in CR (tr '\\r' '\\n')."
	}
	header, notes := t.header(in)
	return description{summary: t.summary(), text: true, header: header, notes: notes, body: t.body}, nil
}

func describeBinary(name string, in *source) description {
	return description{
		summary: "binary (" + name + ")",
		header:  fmt.Sprintf("BINARY: %s, %s.", name, in.size()),
		notes:   []string{"Text filters cannot read it."},
	}
}

func describeEmpty(in *source) description {
	d := description{summary: "empty", header: "EMPTY: 0 bytes"}
	if in.bytes > 0 {
		d.header = fmt.Sprintf("EMPTY: %s of white space", sizeText(in.bytes))
	}
	if in.partial {
		d.header += " (the data was cut there)"
	}
	return d
}

// print fills a budget: markers where there is room for them and something between them, the header, the body.
func (d description) print(chars int) string {
	before, after := "", ""
	if chars >= markedChars {
		before, after = opening, closing
	}
	room := chars - runes(before) - runes(after)
	header := d.header
	for _, note := range d.notes {
		if longer := header + " " + note; runes(longer) <= room/2 {
			header = longer
		}
	}
	header = endLine(cut(header, room), room)
	var b strings.Builder
	b.WriteString(before)
	b.WriteString(header)
	if left := room - runes(header); d.body != nil && left > 0 {
		b.WriteString(d.body(left))
	}
	b.WriteString(after)
	return b.String()
}

// endLine ends text in a newline if that fits.
func endLine(text string, chars int) string {
	if text == "" || strings.HasSuffix(text, "\n") || runes(text) >= chars {
		return text
	}
	return text + "\n"
}
