//go:build linux

package e2e

import (
	"testing"

	"github.com/mcsh-dev/mcsh/internal/conformancetest"
)

// TestConformance runs the official suite against mcsh as it is installed. Its expected failures are named, with the reason.
func TestConformance(t *testing.T) {
	t.Parallel()
	_, url := serveHTTP(t, object{"demo": object{"builtin": "demo"}})
	const baseline = "testdata/conformance.yml"
	conformancetest.Run{Revision: versions[0], Baseline: baseline, Also: []string{"server-session-lifecycle"}}.Server(t, url)
	conformancetest.Run{Revision: versions[1], Baseline: baseline, Also: []string{"http-header-validation"}}.Server(t, url)
}
