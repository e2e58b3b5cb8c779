// Package deploy holds the recipe of the image that gateways and sandbox workers run in.
package deploy

import _ "embed"

// Dockerfile is the recipe. Its context holds the programs as bin/mcsh and bin/mcsh-worker; its argument BASE is the
// image to begin with.
//
//go:embed Dockerfile
var Dockerfile []byte
