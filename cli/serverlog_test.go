package cli

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/upstream"
)

// TestServerLogger: what a server logs comes to our log at the level that fits, with what is known of it.
func TestServerLogger(t *testing.T) {
	for level, want := range map[string]zapcore.Level{
		"debug": zap.DebugLevel, "info": zap.InfoLevel, "notice": zap.InfoLevel, "warning": zap.WarnLevel,
		"error": zap.ErrorLevel, "critical": zap.ErrorLevel, "alert": zap.ErrorLevel, "emergency": zap.ErrorLevel,
	} {
		core, lines := observer.New(zap.DebugLevel)
		serverLogger(zap.New(core))(upstream.LogLine{Server: "s", Level: level, Logger: "db", Text: "slow", Lost: 3})
		got := lines.All()
		if len(got) != 1 || got[0].Level != want {
			t.Fatalf("%s: got %+v", level, got)
		}
		fields := map[string]any{"server": "s", "logger": "db", "text": "slow", "lost": int64(3)}
		if diff := cmp.Diff(fields, got[0].ContextMap()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", level, diff)
		}
	}
}
