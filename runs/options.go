package runs

import (
	"cmp"
	"time"
)

// Options bound a store. The zero value of a field means its default.
type Options struct {
	Dir string // where files are made, which have no names; the system's temporary directory if empty

	Head   int64         // bytes of an output that are kept in memory before a file takes the rest, 1 MiB
	Memory int64         // bytes of all outputs in memory together, beyond which files take them, 256 MiB
	Output int64         // bytes of one output, 64 MiB
	Total  int64         // bytes of all outputs, 2 GiB
	Runs   int           // how many runs, 10,000
	TTL    time.Duration // how long a run is kept after its last use, 30 minutes
}

func (o Options) withDefaults() Options {
	o.Head = cmp.Or(o.Head, 1<<20)
	o.Memory = cmp.Or(o.Memory, 256<<20)
	o.Output = cmp.Or(o.Output, 64<<20)
	o.Total = cmp.Or(o.Total, 2<<30)
	o.Runs = cmp.Or(o.Runs, 10_000)
	o.TTL = cmp.Or(o.TTL, 30*time.Minute)
	return o
}
