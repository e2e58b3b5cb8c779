package sandbox

import "slices"

// Gaps in what holds a worker from outside. The local backend has them by its nature.
const (
	GapRoot         = "the root of its file system can be written to"
	GapNetwork      = "it has network interfaces"
	GapCapabilities = "it has capabilities of root"
	GapMemory       = "nothing limits the memory of all its processes together"
	GapProcesses    = "nothing limits the number of its processes"
)

// A requirement is what an operator may demand of a backend.
type requirement struct {
	name      string
	gap       string // what its absence means where it is something around the worker that holds it; otherwise empty
	fulfilled func(r Report) bool
}

// requirements is the table, sorted by name.
var requirements = []requirement{
	{"landlock", "", func(r Report) bool { return r.Landlock > 0 }},
	{"memory-limit", GapMemory, func(r Report) bool { return r.Memory > 0 }},
	{"no-capabilities", GapCapabilities, func(r Report) bool { return r.Capabilities == 0 }},
	{"no-network", GapNetwork, func(r Report) bool { return r.NoNetwork }},
	{"no-new-privileges", "", func(r Report) bool { return r.NoNewPrivs }},
	{"no-root", "", func(r Report) bool { return r.UID != 0 }},
	{"process-limit", GapProcesses, func(r Report) bool { return r.Processes > 0 }},
	{"read-only-root", GapRoot, func(r Report) bool { return r.ReadOnlyRoot }},
	{"seccomp", "", func(r Report) bool { return r.Seccomp }},
}

// Requirements are the names that [Report.Lacks] knows.
func Requirements() []string {
	names := make([]string, len(requirements))
	for i, r := range requirements {
		names[i] = r.name
	}
	return names
}

// IsRequirement reports whether a name is one of [Requirements].
func IsRequirement(name string) bool { return slices.Contains(Requirements(), name) }

// Lacks returns those of the required names that the backend does not meet. A name that does not exist is one of them.
func (r Report) Lacks(required []string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		return slices.ContainsFunc(requirements, func(q requirement) bool { return q.name == name && q.fulfilled(r) })
	})
}

// Unheld names what nothing around the worker holds, of what a container can.
func (r Report) Unheld() (gaps []string) {
	for _, q := range requirements {
		if q.gap != "" && !q.fulfilled(r) {
			gaps = append(gaps, q.gap)
		}
	}
	return gaps
}

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
