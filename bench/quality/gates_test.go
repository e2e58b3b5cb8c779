//go:build !race

package quality_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/bench/quality"
	"github.com/mcsh-dev/mcsh/preview"
)

func shapeOf(data string, chars int) (string, error) {
	res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: chars, Window: true})
	return res.Text, err
}

// TestGates compares previews with the truth, and with those who know less.
func TestGates(t *testing.T) {
	methods := quality.Methods(shapeOf)
	results, err := quality.Compare(quality.Sets(), methods[:1], quality.Budgets())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if len(r.Mean.False) > 0 {
			t.Errorf("previews of %d characters tell what is not true: %q", r.Chars, r.Mean.False)
		}
	}
	results, err = quality.Compare(quality.Sets(), methods, []int{3000})
	if err != nil {
		t.Fatal(err)
	}
	ours, sampler := results[0], results[1]
	if got := ours.Mean.Answerable; got < 0.95 {
		t.Errorf("of all leaves %.3f are answerable at 3000 characters, want 0.95", got)
	}
	if got := ours.Sets["pods"].Answerable; got < 0.9 {
		t.Errorf("of the leaves of Kubernetes objects %.3f are answerable at 3000 characters, want 0.9", got)
	}
	for name, s := range ours.Sets {
		if base := sampler.Sets[name].Answerable; s.Answerable < min(1, base+0.3) {
			t.Errorf("%s: %.2f of all leaves are answerable, of a sample of values %.2f", name, s.Answerable, base)
		}
	}
}
