package ui

import "html/template"

// A page is a row of the table of pages.
type page struct {
	path  string // below the console, as a pattern of http.ServeMux: "servers/{name}"
	title string
	file  string // its templates, in pages/: "main", and one for each part that is asked for alone
	menu  string // its icon in the menu; empty: it is not there
	part  string // the template of a page that is only asked for as a part
	above string // the path of the page that the menu marks instead; empty: its own
	keys  string // the letter that leads there after g

	operators bool                        // nobody else sees it
	whole     bool                        // it is about all servers: nobody sees it who is limited to groups
	there     func(*Options) bool         // reports whether there is anything to show; nil: always
	show      func(v *Visit) (any, error) // makes the data of the templates
	acts      []act                       // what its forms do

	templates func() (*template.Template, error)
}

// An act is what a form of a page does.
type act struct {
	path string // as that of a page
	// do returns the data of the templates of the page, or calls [Visit.To].
	do func(v *Visit) (any, error)
}

// isFor reports whether a person may see the page.
func (p *page) isFor(who Person) bool {
	return (who.Operator || !p.operators) && !(who.Limited && p.whole)
}

// has reports whether the page has a template that is asked for alone.
func (p *page) has(name string) bool {
	t, err := p.templates()
	return err == nil && t.Lookup(name) != nil
}

// pages is the table of pages, in the order of the menu.
func pages() []page {
	return []page{
		startPage(), serversPage(), serverPage(), toolsPage(), toolPage(), playgroundPage(), resultPage(), runsPage(), runPage(), outputPage(),
		pipelinesPage(), pipelinePage(), pipelineEditPage(), pipelineNewPage(), resourcesPage(), resourcePage(), promptsPage(), promptPage(),
		loginsPage(), protocolPage(), resultsPage(), nodesPage(), systemPage(),
	}
}
