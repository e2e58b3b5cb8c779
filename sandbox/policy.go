package sandbox

import "slices"

// A requirement is what an operator may demand of a backend.
type requirement struct {
	name string
	met  func(r Report) bool
}

// requirements is the table, sorted by name.
var requirements = []requirement{
	{"landlock", func(r Report) bool { return r.Landlock > 0 }},
	{"memory-limit", func(r Report) bool { return r.Memory > 0 }},
	{"no-capabilities", func(r Report) bool { return r.Capabilities == 0 }},
	{"no-network", func(r Report) bool { return r.NoNetwork }},
	{"no-new-privileges", func(r Report) bool { return r.NoNewPrivs }},
	{"no-root", func(r Report) bool { return r.UID != 0 }},
	{"process-limit", func(r Report) bool { return r.Processes > 0 }},
	{"read-only-root", func(r Report) bool { return r.ReadOnlyRoot }},
	{"seccomp", func(r Report) bool { return r.Seccomp }},
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

// Lacks returns those of the required names that the backend does not meet. A name that does not exist is not met.
func (r Report) Lacks(required []string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		i := slices.IndexFunc(requirements, func(q requirement) bool { return q.name == name })
		return i >= 0 && requirements[i].met(r)
	})
}
