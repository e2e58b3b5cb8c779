//go:build !unix

package toolhive

import "io/fs"

// private believes the permissions of the directory.
func private(fs.FileInfo) error { return nil }
