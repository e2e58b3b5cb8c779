package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/runs"
)

// keepFlags say how much is kept of what runs produce, and for how long. Zero for all of it keeps nothing.
type keepFlags struct {
	ttl                 time.Duration
	head, output, total byteSize
}

func (k *keepFlags) add(cmd *cobra.Command) {
	k.head, k.output, k.total = 1<<20, 64<<20, 2<<30
	f := cmd.Flags()
	f.DurationVar(&k.ttl, "keep-for", 30*time.Minute, "how long a run is kept after its last use, for pipelines that begin with from")
	f.Var(&k.total, "keep-total", "what is kept of all runs together, the oldest give way; 0 keeps nothing")
	f.Var(&k.output, "keep-stage", "what is kept of one stage; longer outputs are not kept")
	f.Var(&k.head, "keep-memory", "of that, what is kept in memory; the rest is encrypted in files without names")
}

// open makes the store, or none where nothing is to be kept.
func (k *keepFlags) open(dir string) (*runs.Store, error) {
	if k.total == 0 {
		return nil, nil
	}
	if k.ttl <= 0 || k.output <= 0 || k.head <= 0 {
		return nil, usageError("--keep-total 0 keeps nothing", "--keep-for, --keep-stage and --keep-memory must be above zero")
	}
	return runs.New(runs.Options{
		Dir: dir, TTL: k.ttl, Head: min(int64(k.head), int64(k.output)), Output: min(int64(k.output), int64(k.total)), Total: int64(k.total),
	}), nil
}

// byteSize is a flag such as 64MiB: a number of bytes, or of units of 1024.
type byteSize int64

// sizeUnits are the units, the longest spelling first.
var sizeUnits = []struct {
	suffix string
	shift  uint
}{{"gib", 30}, {"mib", 20}, {"kib", 10}, {"g", 30}, {"m", 20}, {"k", 10}, {"b", 0}, {"", 0}}

// Set implements [pflag.Value].
func (b *byteSize) Set(text string) error {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > 1<<62>>u.shift {
			break
		}
		*b = byteSize(n << u.shift)
		return nil
	}
	return fmt.Errorf("write a number of bytes such as 64MiB or 2GiB")
}

// String implements [pflag.Value].
func (b *byteSize) String() string {
	for _, u := range sizeUnits[:3] {
		if n := int64(*b) >> u.shift; n > 0 && n<<u.shift == int64(*b) {
			return fmt.Sprintf("%d%siB", n, strings.ToUpper(u.suffix[:1]))
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements [pflag.Value].
func (b *byteSize) Type() string { return "size" }
