package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

const want = `[{"celsius":16,"city":"Lisboa"},
{"celsius":15,"city":"Porto"},
{"celsius":14,"city":"Faro"}]
stage 1 (tool atlas/cities), calls: 1
stage 2 (tool atlas/weather), calls: 3
`
