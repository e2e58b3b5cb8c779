// Package parttest says what becomes of a test that needs a third-party part, such as a program or a container engine,
// which this machine does not have, how often a test repeats what it does by day and at night, how many tests run at once, and
// builds the programs of this module for tests.
package parttest

import (
	"os"
	"testing"
)

// variable is "required" where every part has to be there, as in .ci/run.
const variable = "MCSH_TEST_PARTS"

// Missing ends a test for which something is missing, and says what and how to get it: it is skipped on the machine of
// a developer and fails where $MCSH_TEST_PARTS is "required".
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if Required() {
		t.Errorf(format, args...)
		t.Fatalf("all parts are required here ($%s)", variable)
	}
	t.Skipf(format, args...)
}

// Required reports whether every part has to be there.
func Required() bool { return os.Getenv(variable) == "required" }
