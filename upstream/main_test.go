package upstream_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

func TestMain(m *testing.M) {
	maps.Copy(children, processChildren)
	maps.Copy(children, lifecycleChildren)
	maps.Copy(children, askingChildren)
	children["live"] = func() { mcptest.NewLive("doc://1", "doc://2").ServeStdio() }
	children["conformance"] = conformanceClient
	parttest.Overlap(12)
	mcptest.Main(m, children)
}

func contains(s, part string) bool { return strings.Contains(s, part) }
