package programs

import (
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

var date = Program{
	Name: "date", Summary: "print the time, or convert one given with -d",
	Example: []string{"-u", "-d", "2024-05-01 +3 days", "+%F"},
	Notes:   "The time zone is UTC unless the text given with -d says another. Many dates at once: jq todate, fromdate, strptime, strftime.",
	Bin:     "date", Package: "coreutils", Mark: coreutils, Locale: true, Zoneinfo: true,
	arrange: dateFormat, tries: givenAny("date"),
	varies: always,
	options: []option{
		flag('u', "utc"), alias(0, "universal", "utc"), alias(0, "uct", "utc"),
		value('d', "date", dateText), flag('R', "rfc-email"), alias(0, "rfc-822", "rfc-email"), alias(0, "rfc-2822", "rfc-email"),
		optional('I', "iso-8601", oneOf("date", "hours", "minutes", "seconds", "ns")),
		value(0, "rfc-3339", oneOf("date", "seconds", "ns")),
		deny('s', "set", one, "it sets the clock", "use -d to show another time"),
		deny('f', "file", one, readsFile, "use jq: todate, fromdate, strptime, strftime"),
		deny('r', "reference", one, walksFiles, "use -d to show another time"),
		deny(0, "debug", nothing, "its notes are lost in a pipeline", useNothing),
		deny(0, "resolution", nothing, "it is about the machine's clock", useNothing),
	},
}

// zoneFile finds a time zone that is a path out of the zone data.
var zoneFile = lazy.Regexp(`TZ="?(:|/|[^"]*\.\.)`)

func dateText(v string) *problem {
	switch {
	case len(v) > 1000:
		return &problem{"it is too long", "at most 1000 bytes are allowed"}
	case zoneFile().MatchString(v):
		return &problem{"the time zone is a path", `name a zone, such as TZ="Europe/Paris"`}
	}
	return nil
}

func dateFormat(p *parsed, _ *Invocation) *stages.Error {
	for i, w := range p.operands() {
		switch {
		case !strings.HasPrefix(w.value, "+"):
			return refuse(w.at, `to show another time use -d: "args": ["-d", `+texts.JSON(w.value)+`]`,
				"%s: %s would set the clock; only one +FORMAT is allowed", p.Name, texts.Quote(w.value))
		case i > 0:
			return refuse(w.at, "put everything into one format, such as \"+%F %T\"", "%s: more than one +FORMAT", p.Name)
		}
		if bad := numberFormat(w.value); bad != nil {
			return refuse(w.at, bad.use, "%s: %s: %s", p.Name, texts.Quote(w.value), bad.why)
		}
	}
	return nil
}
