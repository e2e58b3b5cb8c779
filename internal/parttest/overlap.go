package parttest

import "flag"

// overlapping is how many parallel tests of a package run at once after [Overlap].
const overlapping = "8"

// Overlap lets more parallel tests of a package run at once than there are processors, unless the command line says how
// many. It is for packages whose parallel tests mostly wait: for limits of time and for processes. TestMain calls it.
func Overlap() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", overlapping) // every test binary has this flag
	}
}
