//go:build !race

package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite what RESULTS.md says of the quality of previews")

// TestQualityIsCurrent compares what the results say of previews with previews as they are now.
func TestQualityIsCurrent(t *testing.T) {
	want, err := qualityText()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, got, _ := strings.Cut(string(data), qualityTitle)
	if qualityTitle+got == want {
		return
	}
	if !*update {
		t.Fatalf("previews tell more or less than RESULTS.md says; -update accepts it (-results +now)\n%s", cmp.Diff(qualityTitle+got, want))
	}
	if err := os.WriteFile("RESULTS.md", []byte(rows+want), 0o644); err != nil {
		t.Fatal(err)
	}
}
