package sandbox

// gapsBelow says what a kernel whose Landlock is older than a version cannot hold, and what holds it instead.
// See landlock(7) for the versions.
var gapsBelow = []struct {
	version int
	text    string
}{
	{1, "the kernel offers no Landlock: only jq and sleep can be used, which open no file, and a worker that was taken over could open what its user can"},
	{3, "Landlock is older than version 3: a worker that was taken over could cut files of its user short"},
	{4, "Landlock is older than version 4: the network is closed by the system call filter alone"},
	{6, "Landlock is older than version 6: a worker that was taken over could signal processes of its user"},
}

// gaps lists what a Landlock of that version, 0 for none, leaves to fewer layers than a new one. For commands each
// other layer is enough.
func gaps(landlock int) []string {
	var list []string
	for _, g := range gapsBelow {
		if landlock < g.version {
			list = append(list, g.text)
		}
	}
	return list
}
