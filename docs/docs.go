// Package docs holds those documents that the program shows too.
package docs

import _ "embed"

// Errors says of every code and every exit status what it means and what to do: a section with a heading of the third
// level each.
//
//go:embed errors.md
var Errors []byte
