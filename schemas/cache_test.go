package schemas_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/schemas"
)

// repeat joins n texts, made by a format that is given their number.
func repeat(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "#N", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// TestCancelledCheck: a check ends when its context is done, and no other check of the same tool waits for it.
func TestCancelledCheck(t *testing.T) {
	const schema = `{"properties":{"l":{"uniqueItems":true}}}`
	check := schemas.NewCache(1<<20, nil, schemas.Limits{}).Check(json.RawMessage(schema))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nobody waits"))
	if wrong, note := check(ctx, json.RawMessage(`{"l":[1,1]}`), false); wrong != nil || !strings.Contains(note, "nobody waits") {
		t.Errorf("a cancelled check says %q, %q", wrong, note)
	}
	if wrong, note := check(t.Context(), json.RawMessage(`{"l":[1,1]}`), false); len(wrong) != 1 || note != "" {
		t.Errorf("the next check says %q, %q", wrong, note)
	}
	steps := schemas.NewSteps(ctx, 10)
	if steps.Take(1) || steps.Err() == nil {
		t.Error("there are steps after the end of their context")
	}
}

// TestCacheEvicts: compiled schemas are kept up to a size and as far as there is memory, those that were used last, and
// checked all the same.
func TestCacheEvicts(t *testing.T) {
	for _, total := range []int64{1 << 30, 32 << 10, 100} {
		share := memory.New(total).Share("schemas", total)
		cache := schemas.NewCache(64<<10, share, schemas.Limits{})
		var checks []func(context.Context, json.RawMessage, bool) ([]string, string)
		for i := range 100 {
			checks = append(checks, cache.Check(json.RawMessage(fmt.Sprintf(`{"properties":{%s,"a":{"const":%d}}}`, repeat(5, `"p#N":{"type":"string"}`), i))))
		}
		for range 2 {
			for i, check := range checks {
				wrong, note := check(t.Context(), json.RawMessage(`{"a":-1}`), false)
				if want := fmt.Sprintf("a must be %d, got -1", i); len(wrong) != 1 || wrong[0] != want || note != "" {
					t.Fatalf("schema %d: %q, %q; want %q", i, wrong, note, want)
				}
				if size := cache.Size(); size > 64<<10 || size != share.Used() || size == 0 && total > 1000 {
					t.Fatalf("%d bytes are kept, %d of %d are taken", size, share.Used(), total)
				}
			}
		}
		large, before := cache.Check(json.RawMessage(fmt.Sprintf(`{"properties":{%s}}`, repeat(1000, `"p#N":{"type":"string"}`)))), cache.Size()
		if large(t.Context(), json.RawMessage(`{}`), false); cache.Size() != before {
			t.Errorf("a schema that is too large to keep leaves %d of %d bytes", cache.Size(), before)
		}
		if _, note := checks[0](t.Context(), json.RawMessage(`{"b":"`+strings.Repeat("x", 64<<10)+`"}`), false); (note == "") != (total == 1<<30) {
			t.Errorf("with %d bytes of memory large arguments are checked with the note %q", total, note)
		}
	}
}
