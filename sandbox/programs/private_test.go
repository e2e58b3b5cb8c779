package programs_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// TestIsPrivate: a directory of the gateway is private as any file system writes its name.
func TestIsPrivate(t *testing.T) {
	for name, want := range map[string]bool{
		".mcsh": true, "a/.MCSH/x": true, ".Filesystem/a/00001": true, ".mcsh./x": true, ".mcsh2": false, "mcsh": false, "a/filesystem": false, ".": false,
	} {
		if got := programs.IsPrivate(name); got != want {
			t.Errorf("%s: private is %v, want %v", name, got, want)
		}
	}
}
