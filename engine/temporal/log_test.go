package temporal

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"go.temporal.io/sdk/temporal"
)

// TestWarnings: a job that was cancelled is no line of the log, any other error is one.
func TestWarnings(t *testing.T) {
	var out bytes.Buffer
	w := warnings{slog.New(slog.NewTextHandler(&out, nil))}
	w.Debug("one")
	w.Info("two")
	w.Warn("three", "Error", temporal.NewCanceledError())
	w.Error("four", "Error", temporal.NewCanceledError())
	if out.Len() > 0 {
		t.Errorf("got %s", out.String())
	}
	w.Warn("five", "Error", errors.New("why"))
	w.Error("six", "Error", errors.New("why"))
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 2 {
		t.Errorf("got %s", out.String())
	}
}
