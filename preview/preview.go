package preview

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Options limit what is printed. The zero value works.
type Options struct {
	// Chars is the budget in Unicode code points, markers included. 0 means 3000, or 1200 for a window; a negative
	// budget prints nothing. The maximum is 1,000,000.
	Chars int
	// Window means that the data also flows on, so the reader wants its shape: only data of up to 400 characters is
	// printed verbatim.
	Window bool
	// Check reports whether a jq program compiles. A proposed program that does not is left out. Without a Check every
	// proposal is printed.
	Check func(program string) bool
}

const (
	defaultChars  = 3000
	windowChars   = 1200
	windowWhole   = 400 // characters of data that a window prints verbatim
	maxChars      = 1_000_000
	markedChars   = 120 // the smallest budget with markers
	opening       = "=== PREVIEW (not valid JSON: shape of the data) ===\n"
	closing       = "=== END PREVIEW ===\n"
	byteOrderMark = "\xef\xbb\xbf"
)

func (o Options) chars() int {
	standard := defaultChars
	if o.Window {
		standard = windowChars
	}
	return max(0, min(cmp.Or(o.Chars, standard), maxChars))
}

// Result is a preview.
type Result struct {
	Text     string // at most Chars code points, valid UTF-8, ends in a newline when there is room
	Summary  string // the data in a few words: "30 JSON documents", "text, 12 lines", "binary (gzip)"
	Bytes    int64  // bytes read
	Verbatim bool   // Text is the data itself
	Partial  bool   // the data is a sample that ends early: the reader ended with io.ErrUnexpectedEOF
}

// Preview reads r to its end and describes it. Only r and ctx can cause an error, no data can. Data that fits into the
// budget is returned as it is.
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

// description is the preview before it is fitted into a budget.
type description struct {
	summary string
	text    bool // it may be printed as it is
	header  string
	notes   notes                   // sentences after the header, the most important first
	body    func(budget int) string // returns at most budget characters; nil: nothing to print
}

type notes []string

// add appends a sentence if it is wanted.
func (n *notes) add(wanted bool, format string, args ...any) {
	if wanted {
		*n = append(*n, fmt.Sprintf(format, args...))
	}
}

// describe reads the rest of in, which begins with head.
func describe(in *source, head []byte, whole bool, o Options) (description, error) {
	if utf16 := utf16Encoding(head); utf16 != nil {
		return describeUTF16(in, head, utf16, o)
	}
	name := binaryName(head)
	if name == unknownFormat {
		if _, _, ok := sniffJSON(head, whole); ok {
			name = "" // JSON with zero bytes in its strings
		}
	}
	if blank := len(bytes.TrimSpace(head)) == 0; name != "" || blank && whole {
		if err := in.drain(); err != nil {
			return description{}, err
		}
		if name != "" {
			return encoded("binary ("+name+")", "BINARY: "+name, "jq cannot read it; grep, sort and others can.", in), nil
		}
		return describeEmpty(in), nil
	}
	data, marked := bytes.CutPrefix(head, []byte(byteOrderMark))
	about, err := describeText(in, data, whole, o)
	about.text = true
	about.notes.add(marked, "Begins with a byte order mark.")
	return about, err
}

// describeUTF16 describes the text after it is converted to UTF-8.
func describeUTF16(in *source, head []byte, utf16 encoding.Encoding, o Options) (description, error) {
	text := &source{ctx: in.ctx, of: in, r: utf16.NewDecoder().Reader(io.MultiReader(bytes.NewReader(head), in))}
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
		j, err := readJSON(io.MultiReader(bytes.NewReader(data[at:]), in), lines, data[at] == 0x1e)
		if err == nil {
			err = in.drain()
		}
		if err != nil {
			return description{}, err
		}
		return j.describe(in, data[at:], o), nil
	}
	src := io.MultiReader(bytes.NewReader(data), in)
	if form, ok := sniffCSV(data, whole); ok {
		c, err := readCSV(src, form)
		if err != nil {
			return description{}, err
		}
		return c.describe(in, o), nil
	}
	returns := bytes.IndexByte(data, '\r') >= 0 && bytes.IndexByte(data, '\n') < 0
	if returns {
		src = carriageReturns{src}
	}
	t, err := readText(src)
	if err != nil {
		return description{}, err
	}
	if name := textInBase64(data); name != "" {
		return encoded("base64 ("+name+")", "BASE64 ("+name+")", "base64 -d decodes it.", in), nil
	}
	kind, note := textFormat(data)
	if why := whyNotJSON(data); why != "" {
		kind, note = "TEXT", why
	}
	if returns {
		note = "Lines end in CR (tr '\\r' '\\n')."
	}
	return t.describe(in, kind, note), nil
}

// encoded describes data that is no text for people.
func encoded(summary, format, note string, in *source) description {
	return description{summary: summary, header: fmt.Sprintf("%s, %s.", format, in.size()), notes: []string{note}}
}

func describeEmpty(in *source) description {
	d := description{summary: "empty", header: "EMPTY: 0 bytes"}
	if in.bytes > 0 {
		d.header = fmt.Sprintf("EMPTY: %s of white space", sizeText(in.bytes))
	}
	if in.partial {
		d.header += sampleEnds
	}
	return d
}

// print fills a budget with the header, the notes that fit, the body, and markers around them if they fit too.
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
	header = endLine(texts.Fit(header, room), room)
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
