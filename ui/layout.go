package ui

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

//go:embed pages
var templates embed.FS

// parse sets p.templates, which parses the shared templates and that of the page when it is first shown: most gateways never show it.
func (p *page) parse(assets map[string]*asset) {
	p.templates = sync.OnceValues(func() (*template.Template, error) {
		return template.New(p.file).Funcs(functions(assets)).ParseFS(templates, "pages/layout.html", "pages/parts*.html", "pages/"+p.file)
	})
}

// layout is the data of the layout.
type layout struct {
	Title    string
	Base     string // of all relative addresses
	Here     string // the path of the page below the base, with its query
	Token    string // for forms
	Menu     []menuItem
	Who      Person
	Gateway  control.Gateway
	Instance string // changes when the gateway has restarted
	Data     any    // of the page
}

type menuItem struct {
	Path, Title, Icon, Keys string
	Current                 bool
}

func (v *Visit) layout(p *page, data any) *layout {
	gateway := v.console.options.About()
	l := &layout{
		Title: p.title, Base: v.Base, Here: strings.TrimPrefix(v.URL.RequestURI(), "/"), Token: v.token(), Who: v.Who,
		Gateway: gateway, Instance: v.console.hub.instance, Data: data,
	}
	if t, ok := data.(interface{ PageTitle() string }); ok {
		l.Title = texts.Fit(t.PageTitle(), 80)
	}
	for _, other := range v.console.pages {
		if other.menu != "" && other.isFor(v.Who) {
			l.Menu = append(l.Menu, menuItem{other.path, other.title, other.menu, other.keys, other == p || p.above != "" && other.path == p.above})
		}
	}
	return l
}

// asciiJSON returns v as JSON that a header can hold.
func asciiJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	var b bytes.Buffer
	for _, c := range string(data) {
		switch {
		case c < 0x80:
			b.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}
