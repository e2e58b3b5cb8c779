package parttest

import (
	"flag"
	"strconv"
)

// Overlap lets this many parallel tests of a package run at once, more than there are processors, unless the command line
// says how many. It is for packages whose parallel tests mostly wait: for limits of time and for processes. TestMain calls it.
func Overlap(most int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(most)) // every test binary has this flag
	}
}
