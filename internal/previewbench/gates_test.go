package previewbench_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/previewbench"
	"github.com/mcsh-dev/mcsh/preview"
)

func shapeOf(data string, chars int) (string, error) {
	res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: chars, Window: true})
	return res.Text, err
}

// TestGates compares previews with the truth, and with those who know less.
func TestGates(t *testing.T) {
	methods := previewbench.Methods(shapeOf)
	results, err := previewbench.Compare(previewbench.Sets(), methods[:1], previewbench.Budgets())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if len(r.Mean.False) > 0 {
			t.Errorf("previews of %d characters tell what is not true: %q", r.Chars, r.Mean.False)
		}
	}
	results, err = previewbench.Compare(previewbench.Sets(), methods, []int{3000})
	if err != nil {
		t.Fatal(err)
	}
	ours, sampler := results[0], results[1]
	if got := ours.Mean.Answerable; got < 0.95 {
		t.Errorf("of all leaves %.3f are answerable at 3000 characters, want 0.95", got)
	}
	for name, s := range ours.Sets {
		if base := sampler.Sets[name].Answerable; s.Answerable < min(1, base+0.3) {
			t.Errorf("%s: %.2f of all leaves are answerable, of a sample of values %.2f", name, s.Answerable, base)
		}
	}
}
