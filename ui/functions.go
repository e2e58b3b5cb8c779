package ui

import (
	"encoding/json"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// functions are what templates call.
func functions(assets map[string]*asset) template.FuncMap {
	return template.FuncMap{
		"asset":     func(name string) string { return assets[name].address() }, // a page with a wrong name fails in tests
		"icon":      icon,
		"runKind":   runKind,
		"bytes":     bytesText[int64],
		"ibytes":    bytesText[int],
		"number":    number,
		"count":     func(n int, noun string) string { return texts.Count(n, noun) },
		"duration":  Duration,
		"since":     func(t time.Time) string { return Duration(time.Since(t)) },
		"ago":       ago,
		"time":      func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
		"machine":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"cut":       func(n int, s string) string { return texts.Plain(texts.Fit(s, n), true) },
		"shown":     func(s string) string { return texts.Plain(s, true) },
		"percent":   func(part, whole float64) string { return strconv.FormatFloat(100*part/math.Max(whole, 1), 'f', 0, 64) },
		"json":      texts.JSON,
		"add":       func(a, b int64) int64 { return a + b },
		"plain":     func(value string) string { return plainText(json.RawMessage(value)) }, // of JSON
		"stateKind": stateKind,
		"state":     func(s ServerState) string { return s.state() },
		"segment":   url.PathEscape,  // a part of a path
		"query":     url.QueryEscape, // a value in an address
		"part":      func(pairs ...any) map[string]any { return part(pairs) },
		"calls":     func(n int64) string { return texts.Count(n, "call") },
		"lines":     diffLines,
		"took":      func(r control.Run) string { return Duration(elapsed(&r)) },
	}
}

func bytesText[N ~int | ~int64](n N) string { return texts.Bytes(int64(n)) }

// part makes the data of a template that is called with several values: name, value, name, value.
func part(pairs []any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string) // templates are ours
		m[name] = pairs[i+1]
	}
	return m
}

// number writes a number with thin spaces between thousands.
func number(n any) string {
	var s string
	switch n := n.(type) {
	case int:
		s = strconv.Itoa(n)
	case int64:
		s = strconv.FormatInt(n, 10)
	case uint64:
		s = strconv.FormatUint(n, 10)
	case float64:
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	sign := ""
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, s = "-", rest
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return sign + s
}

// ago writes the time since t, as the browser writes it later.
func ago(t time.Time) string {
	if d := time.Since(t); d >= time.Second {
		return Duration(d.Truncate(time.Second)) + " ago"
	}
	return "now"
}

// Duration writes a duration with three digits or less: "0.4 ms", "250 ms", "1.25 s", "3 min 5 s", "2 h 10 min", "3 d 4 h".
func Duration(d time.Duration) string {
	short := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
	two := func(large time.Duration, a string, small time.Duration, b string) string {
		s := strconv.FormatInt(int64(d/large), 10) + a
		if rest := d % large / small; rest > 0 {
			s += " " + strconv.FormatInt(int64(rest), 10) + b
		}
		return s
	}
	switch {
	case d < 0:
		return "0 s"
	case d < 999*time.Millisecond+time.Millisecond/2:
		return short(math.Round(float64(d)/1e3)/1e3) + " ms"
	case d < time.Minute:
		return short(d.Seconds()) + " s"
	case d < time.Hour:
		return two(time.Minute, " min", time.Second, " s")
	case d < 24*time.Hour:
		return two(time.Hour, " h", time.Minute, " min")
	}
	return two(24*time.Hour, " d", time.Hour, " h")
}

// diffLines are the lines of a diff with their classes.
func diffLines(diff string) (list []Fact) {
	for line := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		class := "same"
		switch {
		case strings.HasPrefix(line, "+"):
			class = "added"
		case strings.HasPrefix(line, "-"):
			class = "removed"
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "diff "):
			class = "at"
		}
		list = append(list, Fact{class, line})
	}
	return list
}
