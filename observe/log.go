package observe

import (
	"fmt"
	"io"
	"regexp"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogOptions say what a log is like.
type LogOptions struct {
	Level  string              // debug, info, warn or error
	Format string              // console or json
	Hide   func(string) string // takes secrets out of a line that is to be written; may be nil
}

// encoders make lines, by format.
var encoders = map[string]func(zapcore.EncoderConfig) zapcore.Encoder{
	"console": zapcore.NewConsoleEncoder,
	"json":    zapcore.NewJSONEncoder,
}

// NewLog returns a log that writes to w. Whatever is written goes by the one place that takes secrets out of it.
func NewLog(w io.Writer, o LogOptions) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(o.Level)
	if err != nil || level > zapcore.ErrorLevel {
		return nil, fmt.Errorf("unknown level %q: there are debug, info, warn and error", clip(o.Level))
	}
	encoder, ok := encoders[o.Format]
	if !ok {
		return nil, fmt.Errorf("unknown format %q: there are console and json", clip(o.Format))
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(encoder(c), zapcore.Lock(scrubber{w, o.Hide}), level)), nil
}

// scrubber takes secrets out of lines.
type scrubber struct {
	w    io.Writer
	hide func(string) string
}

// shapes of secrets: what stands before the @ and behind the ? of an address, what opens a session, and tokens.
var shapes = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(://)[^/?#\s"']*@`), "${1}***@"}, // to the last one: passwords have some, too
	// What stands in a line is written as JSON; an escape that ends a text stays.
	{regexp.MustCompile(`(https?://[^\s"'?]*\?)(?:[^\s"'\\]|\\u[0-9a-f]{4}|\\\\)+`), "${1}***"},
	{regexp.MustCompile(`("session_id": ?")[^"]*`), "${1}***"},
	{regexp.MustCompile(`\bmcsh_[A-Za-z0-9_-]{43}`), "mcsh_***"},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "***"}, // those of issuers
	{regexp.MustCompile(`(?i)(\b(?:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}`), "${1}***"},
}

// unseen are characters that a terminal acts on instead of showing them, and that turn the direction of text. What servers
// say is in lines.
var unseen = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]`)

// Write writes one line.
func (s scrubber) Write(line []byte) (int, error) {
	text := string(line)
	for _, shape := range shapes {
		text = shape.find.ReplaceAllString(text, shape.put)
	}
	if s.hide != nil {
		text = s.hide(text)
	}
	text = unseen.ReplaceAllStringFunc(text, func(c string) string { return fmt.Sprintf(`\u%04x`, []rune(c)[0]) })
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Sync implements [zapcore.WriteSyncer].
func (scrubber) Sync() error { return nil }
