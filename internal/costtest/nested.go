package costtest

import (
	"os"
	"testing"
)

// Nested makes directories named d in each other, more than a path can name.
func Nested(t testing.TB, dir string, levels int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	for range levels {
		if err == nil {
			err = at.Mkdir("d", 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		above := at
		at, err = above.OpenRoot("d")
		above.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	at.Close()
}
