// Package ui is the console: pages on which people see what a gateway does. It has pages and handlers only. It knows no MCP: it
// reads and acts through the interfaces that it declares, which package cli implements.
//
// # Decisions
//
//   - A page is one row of the table [pages], one Go file page_NAME.go and one template pages/NAME.html. The Go file has the
//     interface by which the page gets its data, and functions that make the data of the template.
//   - html/template writes every byte of HTML. htmx swaps in what it has written, and evaluates nothing. A request of htmx whose
//     target is the element with the id X gets only the template X of the page, with the same data: a page has no second way to
//     its parts.
//   - Addresses in templates are relative, and <base> leads them: a console is at / of a listener, at /console/ of the control
//     socket, and at /WORD/g/ID/ of "mcsh console".
//   - The event stream carries names of what has changed, and no data: the page then asks for the part again, as the same person.
//     A slow browser loses nothing but what lies between two looks, and holds up nobody.
//   - No inline script and no inline style, in any page: the policy of its answers forbids both, and so hostile text stays text.
package ui
