package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxHeader = 8 << 10 // bytes of a header
	// maxSkipped bounds a message that is too long and is read to its end, to answer it by its id.
	maxSkipped = 1 << 30
	maxShown   = 60 // bytes of a header line in an error
)

// hasHeaders reports whether messages have headers before them, as in the Language Server Protocol: the input then begins
// with "Content-", in any case. Otherwise each message is a line. It reads no further than it must to know.
func hasHeaders(in *bufio.Reader) bool {
	const first = "content-"
	for n := 1; ; {
		start, err := in.Peek(n)
		switch {
		case err != nil:
			return false
		case n == 1 && bytes.ContainsAny(start, " \t\r\n"):
			_, _ = in.Discard(1) // it is there
		case !strings.EqualFold(string(start), first[:n]):
			return false
		case n == len(first):
			return true
		default:
			n++
		}
	}
}

// readFrame reads a message behind its header into c.line and o. After an error other than the end of the input, the place of
// the next message is unknown.
func (c *conn) readFrame(o *outline) error {
	h, err := readHeader(c.in)
	if err != nil {
		return err
	}
	o.long = h.length > maxInput
	for left := h.length; left > 0; {
		part, err := c.in.Peek(int(min(left, int64(c.in.Size()))))
		c.keep(o, part)
		left -= int64(len(part))
		if err != nil {
			return broken("the input ended %s before the end of the message", texts.Bytes(left))
		}
		_, _ = c.in.Discard(len(part)) // they are there
	}
	return nil
}

// A header is what stands before a message.
type header struct {
	length int64 // of the message, in bytes; negative: not given
}

// readHeader reads a header with the empty line at its end. Empty lines before it do not count. The error is io.EOF only if
// nothing of a header came.
func readHeader(in *bufio.Reader) (header, error) {
	h := header{length: -1}
	for size := 0; ; {
		line, err := in.ReadSlice('\n')
		if size += len(line); size > maxHeader || errors.Is(err, bufio.ErrBufferFull) {
			return h, broken("the header is longer than %s", texts.Bytes(maxHeader))
		}
		text := bytes.TrimRight(line, "\r\n")
		blank := len(bytes.TrimSpace(text)) == 0
		switch {
		case err == io.EOF && blank && size == len(line):
			return h, io.EOF
		case err != nil:
			return h, broken("the input ended within a header")
		case !blank:
			if err := h.add(text); err != nil {
				return h, err
			}
		case size == len(line): // nothing has begun
			size = 0
		case h.length < 0:
			return h, broken(`the header has no Content-Length`)
		default:
			return h, nil
		}
	}
}

// add takes a line of the header.
func (h *header) add(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	shown := texts.Fit(string(line), maxShown)
	if !ok || !utf8.Valid(line) || len(name) == 0 || bytes.ContainsFunc(name, notOfName) {
		return broken("%q is no line of a header", shown)
	}
	text := strings.TrimSpace(string(value))
	switch strings.ToLower(string(name)) {
	case "content-length":
		n, err := strconv.ParseUint(text, 10, 63)
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange):
			return broken("%q does not give the length of the message in bytes", shown)
		case err != nil || n > maxSkipped:
			return broken("%q: a message has at most %s", shown, texts.Bytes(maxInput))
		case h.length >= 0:
			return broken("the header has two lengths")
		}
		h.length = int64(n)
	case "content-type":
		_, params, err := mime.ParseMediaType(text)
		if charset := params["charset"]; err == nil && charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
			return broken("%q: messages are in UTF-8", shown)
		}
	}
	return nil
}

// notOfName reports whether a character cannot be in the name of a line of a header.
func notOfName(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// framed returns a message with its header.
func framed(message []byte) []byte {
	message = bytes.TrimRight(message, "\n")
	return append(fmt.Appendf(make([]byte, 0, len(message)+40), "Content-Length: %d\r\n\r\n", len(message)), message...)
}

// broken is the error for input in which the next message cannot be found.
func broken(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeParseError,
		Message: "parse error: " + fmt.Sprintf(format, args...) + `: send "Content-Length: BYTES", an empty line and the message, each time`,
	}
}
