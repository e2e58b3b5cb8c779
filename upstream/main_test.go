package upstream_test

import (
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main(m, children)
}

func contains(s, part string) bool { return strings.Contains(s, part) }
