package parttest

import "os"

// NightVariable is set where tests have hours, as in .ci/run night.
const NightVariable = "MCSH_TEST_NIGHT"

// Night reports whether tests have hours. By day a test keeps a few of what it repeats.
func Night() bool { return os.Getenv(NightVariable) != "" }

// Times returns a number of repetitions, or a size: the first by day, the second at night.
func Times(day, night int) int {
	if Night() {
		return night
	}
	return day
}
