package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary the upstream server where a row starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == upstreamArg {
		serveUpstream(context.Background())
		return
	}
	os.Exit(m.Run())
}

// TestRows runs every row with little to do, so that all of them keep working. The goals are not judged.
func TestRows(t *testing.T) {
	tiny := sizes{
		calls: 5, chains: 2, latency: 20 * time.Millisecond, items: 128, many: 500, lines: 10, quick: 100, big: 1 << 20, shape: 1 << 20,
	}
	file := filepath.Join(t.TempDir(), "results.md")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-runs", "1", "-o", file}, &out, tiny); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows() {
		if strings.Count(string(text), "| "+r.name) < 2 {
			t.Errorf("row %q is not in both tables:\n%s", r.name, text)
		}
	}
}
