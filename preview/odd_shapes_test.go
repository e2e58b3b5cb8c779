//go:build !race

package preview_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/preview/shape"
)

// TestOddShapes: results that are huge, deep or wide are described within the bounds.
func TestOddShapes(t *testing.T) {
	wide := "{" + strings.Repeat(`"id":1,`, 1)
	for i := range 5000 {
		wide += fmt.Sprintf(`"%s":%d,`, strings.Repeat(string(rune('a'+i%26)), 1+i%30), i)
	}
	wide = strings.TrimSuffix(wide, ",") + "}"
	bushy := `"x"`
	for range 6 {
		bushy = `{"name":` + bushy + `,"value":` + bushy + `,"id":` + bushy + `,"type":` + bushy + `}`
	}
	for name, data := range map[string]string{
		"deep arrays":  strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"deep objects": strings.Repeat(`{"value":`, 5000) + "1" + strings.Repeat("}", 5000),
		"wide":         wide, "bushy": bushy,
		"long string": `{"text":"` + strings.Repeat("x", 3<<20) + `"}`,
		"long key":    `{"` + strings.Repeat("x", 3<<20) + `":1,"id":1}`,
		"long line":   strings.Repeat("x ", 1<<20),
		"zeros":       strings.Repeat("\x00", 1000),
	} {
		got, err := preview.ResultShape([]byte(data), false, false, shape.Common())
		if err != nil || !got.Known() {
			t.Fatalf("%s: got %v, %v", name, got, err)
		}
		written, err := json.Marshal(got)
		if err != nil || len(written) > 64<<10 {
			t.Errorf("%s: %d bytes, %v", name, len(written), err)
		}
		if brief := got.Brief(300); len([]rune(brief)) > 300 {
			t.Errorf("%s: %d characters: %s", name, len([]rune(brief)), brief)
		}
	}
}
