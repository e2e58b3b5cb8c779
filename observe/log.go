package observe

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// encoders are the encoders by format.
var encoders = map[string]func(zapcore.EncoderConfig) zapcore.Encoder{
	"console": zapcore.NewConsoleEncoder,
	"json":    zapcore.NewJSONEncoder,
}

// NewLog returns a log that writes lines of a level (debug, info, warn or error) and above to w, in a format (console or
// json). hide removes secrets from every line; it may be nil.
func NewLog(w io.Writer, level, format string, hide func(string) string) (*zap.Logger, error) {
	least, err := zapcore.ParseLevel(level)
	if err != nil || least > zapcore.ErrorLevel {
		return nil, fmt.Errorf("unknown level %q: there are debug, info, warn and error", clip(level))
	}
	encoder, ok := encoders[format]
	if !ok {
		return nil, fmt.Errorf("unknown format %q: there are console and json", clip(format))
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	s := scrubber{w, hide}
	return zap.New(newBounded(zapcore.NewCore(encoder(c), zapcore.Lock(zapcore.AddSync(s)), least), s.clean)), nil
}

// scrubber removes secrets from lines.
type scrubber struct {
	w    io.Writer
	hide func(string) string
}

// secrets matches the user and the query of addresses, ids of sessions, and tokens.
var secrets = []struct {
	find func() *regexp.Regexp
	put  string
}{
	{lazy.Regexp(`(://)[^/?#\s"']*@`), "${1}***@"}, // to the last @: passwords may hold one
	// Texts in a line are JSON strings; an escape that ends a text stays.
	{lazy.Regexp(`(https?://[^\s"'?]*\?)(?:[^\s"'\\]|\\u[0-9a-f]{4}|\\\\)+`), "${1}***"},
	{lazy.Regexp(`("session_id": ?")[^"]*`), "${1}***"},
	{lazy.Regexp(`\bmcsh_[A-Za-z0-9_-]{43}`), "mcsh_***"},
	{lazy.Regexp(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "***"}, // tokens of issuers
	{lazy.Regexp(`(?i)(\b(?:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}`), "${1}***"},
}

// unseen matches control characters and those that change the direction of text: lines quote servers, and terminals
// would act on them.
var unseen = lazy.Regexp(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]`)

// clean removes secrets from a text.
func (s scrubber) clean(text string) string {
	for _, secret := range secrets {
		text = secret.find().ReplaceAllString(text, secret.put)
	}
	if s.hide != nil {
		text = s.hide(text)
	}
	return text
}

// Write writes one line.
func (s scrubber) Write(line []byte) (int, error) {
	text := s.clean(string(line))
	if len(text) > maxWhole {
		text = texts.Cut(text, maxWhole) + "\n"
	}
	text = unseen().ReplaceAllStringFunc(text, func(c string) string { return fmt.Sprintf(`\u%04x`, []rune(c)[0]) })
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(line), nil
}

const (
	sameLines = 1000     // lines with the same message in a second; each call and run has a line
	maxText   = 4 << 10  // bytes of a message, and of a text field
	maxWhole  = 64 << 10 // bytes of a line
)

// bounded is a core that cuts long texts, so that neither callers nor servers fill a disk, and counts the lines that its
// sampler drops.
type bounded struct {
	zapcore.Core
	clean   func(string) string // removes secrets, before a cut could leave a part of one
	leftOut *atomic.Int64
}

// newBounded returns a core that writes at most sameLines lines with the same message in a second to core.
func newBounded(core zapcore.Core, clean func(string) string) zapcore.Core {
	b := bounded{core, clean, new(atomic.Int64)}
	return zapcore.NewSamplerWithOptions(b, time.Second, sameLines, 0, zapcore.SamplerHook(func(_ zapcore.Entry, d zapcore.SamplingDecision) {
		if d == zapcore.LogDropped {
			b.leftOut.Add(1)
		}
	}))
}

// With implements [zapcore.Core].
func (b bounded) With(fields []zapcore.Field) zapcore.Core {
	return bounded{b.Core.With(b.cutFields(fields)), b.clean, b.leftOut}
}

// Check implements [zapcore.Core].
func (b bounded) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(e.Level) {
		return ce.AddCore(e, b)
	}
	return ce
}

// Write implements [zapcore.Core].
func (b bounded) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if n := b.leftOut.Swap(0); n > 0 {
		note := zapcore.Entry{Level: zapcore.WarnLevel, Time: e.Time, Message: "lines were left out: more than the log takes of one kind in a second"}
		if err := b.Core.Write(note, []zapcore.Field{zap.Int64("lines", n)}); err != nil {
			return err
		}
	}
	e.Message = strings.ReplaceAll(b.cut(e.Message), "\n", `\n`) // the console encoder does not escape it
	return b.Core.Write(e, b.cutFields(fields))
}

// cutFields returns the fields with long texts cut.
func (b bounded) cutFields(fields []zapcore.Field) []zapcore.Field {
	out := make([]zapcore.Field, len(fields))
	for i, f := range fields {
		switch {
		case f.Type == zapcore.StringType:
			f.String = b.cut(f.String)
		case f.Type == zapcore.ErrorType:
			if err, ok := f.Interface.(error); ok && err != nil {
				f = zap.String(f.Key, b.cut(err.Error()))
			}
		}
		out[i] = f
	}
	return out
}

// cut shortens a long text.
func (b bounded) cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return texts.Cut(b.clean(text), maxText)
}
