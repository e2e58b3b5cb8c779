package ui

import (
	"context"
	"net/http"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Offers has what servers offer beside tools, as the caller may use it.
type Offers interface {
	// Resources lists resources and templates of URIs, and Prompts prompts, as far as they are known. Nothing is started for them.
	Resources(ctx context.Context) []Resource
	Prompts(ctx context.Context) []Prompt

	// Read reads a resource by the URI that clients use.
	Read(ctx context.Context, uri string) ([]Content, error)

	// Prompt gets the messages of a prompt.
	Prompt(ctx context.Context, server, name string, args map[string]string) ([]Content, error)
}

// A Resource is a resource, or a template of URIs.
type Resource struct {
	Server, URI, Original, Name, Title, Description, Kind string
	Size                                                  int64
	Template                                              bool
}

// A Prompt is a prompt of a server.
type Prompt struct {
	Server, Name, Title, Description string
	Arguments                        []PromptArgument
}

// A PromptArgument is a value that a prompt takes.
type PromptArgument struct {
	Name, Title, Description string
	Required                 bool
	Value, Wrong             string
}

// A Content is a part of a resource, or a message of a prompt.
type Content struct {
	Role string // of a message
	URI  string
	Kind string // its MIME type
	Text string // cut to its bound
	Blob string // base64 of a picture of a known type, cut to nothing if it is too long
	Size int
}

// Bounds of the pages of offers.
const (
	maxContentText = 512 << 10 // bytes of text at once
	maxContentBlob = 8 << 20   // bytes of pictures at once, in base64
	shownOffers    = 500       // in a list at once
)

// shownContents cuts contents to what a page shows.
func shownContents(list []Content) []Content {
	list = list[:min(len(list), maxNodes)]
	text, blob := maxContentText, maxContentBlob
	for i := range list {
		c := &list[i]
		c.Text = texts.Fit(c.Text, text)
		text -= min(text, len(c.Text))
		if len(c.Blob) > blob || !knownPicture(c.Kind) {
			c.Blob = ""
		}
		blob -= len(c.Blob)
	}
	return list
}

func resourcesPage() page {
	return page{path: "resources", title: "Resources", file: "resources.html", menu: "resources", keys: "e", there: hasOffers, show: showResources}
}

func resourcePage() page {
	return page{path: "resources/read", title: "Resource", file: "resource.html", above: "resources", there: hasOffers, show: showResource}
}

func promptsPage() page {
	return page{path: "prompts", title: "Prompts", file: "prompts.html", menu: "prompts", keys: "m", there: hasOffers, show: showPrompts}
}

func promptPage() page {
	return page{
		path: "prompts/{server}/{name}", title: "Prompt", file: "prompt.html", above: "prompts", there: hasOffers, show: showPrompt,
		acts: []act{{"prompts/{server}/{name}/get", getPrompt}},
	}
}

func hasOffers(o *Options) bool { return o.Offers != nil }

// An offersView is a list with the words that it was searched for.
type offersView[T any] struct {
	Query string
	List  []T
	All   int
	More  int // that are not shown
}

// search keeps the offers whose texts have all words of the query.
func search[T any](v *Visit, all []T, texts func(T) string) *offersView[T] {
	o := &offersView[T]{Query: fitQuery(v.URL.Query().Get("q"))}
	words := strings.Fields(strings.ToLower(o.Query))
next:
	for _, one := range all {
		text := strings.ToLower(texts(one))
		for _, word := range words {
			if !strings.Contains(text, word) {
				continue next
			}
		}
		if o.All++; len(o.List) < shownOffers {
			o.List = append(o.List, one)
		} else {
			o.More++
		}
	}
	return o
}

func fitQuery(text string) string { return texts.Fit(strings.TrimSpace(text), maxQuery) }

func showResources(v *Visit) (any, error) {
	return search(v, v.Options().Offers.Resources(v.Context()), func(r Resource) string {
		return r.Server + " " + r.URI + " " + r.Name + " " + r.Title + " " + r.Description
	}), nil
}

// A resourceView is what a resource has, or a template to fill in.
type resourceView struct {
	URI      string
	Contents []Content
	Wrong    string
	Template bool
}

// PageTitle names the window.
func (r *resourceView) PageTitle() string { return r.URI }

func showResource(v *Visit) (any, error) {
	r := &resourceView{URI: v.URL.Query().Get("uri")}
	from := v.Request.Header.Get("Sec-Fetch-Site")
	elsewhere := from == "cross-site" || from == "same-site" // a page of others must not make a server read
	if r.Template = strings.ContainsAny(r.URI, "{}") || r.URI == "" || elsewhere; r.Template {
		return r, nil
	}
	list, err := v.Options().Offers.Read(v.Context(), r.URI)
	if err != nil {
		r.Wrong = texts.Fit(err.Error(), maxScalar)
	}
	r.Contents = shownContents(list)
	return r, nil
}

func showPrompts(v *Visit) (any, error) {
	return search(v, v.Options().Offers.Prompts(v.Context()), func(p Prompt) string {
		return p.Server + " " + p.Name + " " + p.Title + " " + p.Description
	}), nil
}

// A promptView is a prompt with its messages.
type promptView struct {
	Prompt
	Messages []Content
	Got      bool
	Wrong    string
}

// PageTitle names the window.
func (p *promptView) PageTitle() string { return p.Name }

func showPrompt(v *Visit) (any, error) {
	for _, p := range v.Options().Offers.Prompts(v.Context()) {
		if p.Server == v.PathValue("server") && p.Name == v.PathValue("name") {
			return &promptView{Prompt: p}, nil
		}
	}
	return nil, &Problem{http.StatusNotFound, "This prompt is not there", "its server may have changed", "the page Prompts has all that are known"}
}

func getPrompt(v *Visit) (any, error) {
	data, err := showPrompt(v)
	if err != nil {
		return nil, err
	}
	p := data.(*promptView)
	args, missing := map[string]string{}, false
	for i := range p.Arguments {
		a := &p.Arguments[i]
		if a.Value = v.PostFormValue("a/" + a.Name); a.Value != "" {
			args[a.Name] = strings.ReplaceAll(a.Value, "\r\n", "\n")
		} else if a.Required {
			a.Wrong, missing = "It is required.", true
		}
	}
	if missing {
		return p, nil
	}
	list, err := v.Options().Offers.Prompt(v.Context(), p.Server, p.Name, args)
	if err != nil {
		p.Wrong = texts.Fit(err.Error(), maxScalar)
		return p, nil
	}
	p.Messages, p.Got = shownContents(list), true
	return p, nil
}
