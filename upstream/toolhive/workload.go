package toolhive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream"
)

// Bounds of a list of workloads.
const (
	maxWorkloads = 10_000
	maxEntry     = 64 << 10 // bytes of one
	maxName      = 256      // bytes
	maxFlaws     = 10       // that are named
)

// A Workload is a server as ToolHive lists it. Only the name is always there.
type Workload struct {
	Name          string            `json:"name"`
	Package       string            `json:"package"` // the image, or "remote"
	URL           string            `json:"url"`     // of ToolHive's proxy before the server, empty while there is none
	TransportType string            `json:"transport_type"`
	ProxyMode     string            `json:"proxy_mode"` // what the proxy speaks; older releases leave it out
	Status        string            `json:"status"`
	StatusContext string            `json:"status_context"` // the reason for the status
	Created       string            `json:"created_at"`
	Group         string            `json:"group"`
	Labels        map[string]string `json:"labels"`
}

// inspector is the transport of a web page for people, which ToolHive runs like a server.
const inspector = "inspector"

// parseList reads an answer of the API: {"workloads": [...]}, or null for an empty list. It ignores unknown members; a
// workload that cannot be read is a flaw, and the others count. The list is sorted by name, because the API has no
// order, and names are unique.
func parseList(data []byte) (list []Workload, flaws []string, err error) {
	entries, err := entriesOf(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the list of workloads: %w", err)
	}
	for i, entry := range entries {
		w, err := parseWorkload(entry)
		if err == nil {
			list = append(list, w)
		} else if len(flaws) < maxFlaws {
			flaws = append(flaws, fmt.Sprintf("workload %d: %v", i+1, err))
		}
	}
	slices.SortFunc(list, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Created, b.Created), cmp.Compare(a.URL, b.URL))
	})
	return slices.CompactFunc(list, func(a, b Workload) bool { return a.Name == b.Name }), flaws, nil
}

// entriesOf splits the list up to its greatest length: an entry takes more memory than it has bytes.
func entriesOf(data []byte) (entries []json.RawMessage, err error) {
	var answer struct{ Workloads json.RawMessage }
	switch err := json.Unmarshal(data, &answer); {
	case err != nil:
		return nil, err
	case answer.Workloads == nil:
		return nil, errors.New("the member workloads is missing")
	case string(answer.Workloads) == "null":
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(answer.Workloads))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return nil, errors.New("workloads is not an array")
	}
	for dec.More() {
		if len(entries) == maxWorkloads {
			return nil, fmt.Errorf("it has more than %d", maxWorkloads)
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, err
		}
		entries = append(entries, one)
	}
	return entries, nil
}

func parseWorkload(raw json.RawMessage) (Workload, error) {
	var w Workload
	if len(raw) > maxEntry {
		return w, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxEntry)
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return w, err
	}
	switch {
	case w.Name == "":
		return w, fmt.Errorf("it has no name")
	case len(w.Name) > maxName:
		return w, fmt.Errorf("its name is longer than %d bytes", maxName)
	case upstream.IsReserved(w.Name):
		return w, fmt.Errorf("its name %q is reserved", w.Name)
	}
	return w, nil
}

// A Filter picks workloads by globs, where * is any run of characters, ? one, and [a-z] one of a set. One that begins
// with ! leaves out what it matches. An empty list picks everything that is not left out.
type Filter struct {
	Groups []string // of ToolHive
	Names  []string // of workloads
	Labels []string // KEY=GLOB, or KEY for any value
}

// check refuses globs that cannot be read.
func (f Filter) check() error {
	for _, pattern := range slices.Concat(f.Groups, f.Names, f.Labels) {
		glob := strings.TrimPrefix(pattern, "!")
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("%q is not a glob such as git* or !test-*", pattern)
		}
	}
	return nil
}

// match reports whether the filter picks a workload.
func (f Filter) match(w Workload) bool {
	return picks(f.Groups, func(glob string) bool { return matches(glob, w.Group) }) &&
		picks(f.Names, func(glob string) bool { return matches(glob, w.Name) }) &&
		picks(f.Labels, func(glob string) bool {
			key, glob, valued := strings.Cut(glob, "=")
			value, there := w.Labels[key]
			return there && (!valued || matches(glob, value))
		})
}

// picks applies a list of globs; is reports whether one matches.
func picks(list []string, is func(glob string) bool) bool {
	wanted, picked := false, false
	for _, pattern := range list {
		glob, not := strings.CutPrefix(pattern, "!")
		if not && is(glob) {
			return false
		}
		wanted = wanted || !not
		picked = picked || !not && is(glob)
	}
	return picked || !wanted
}

// matches compares a text with a glob that was checked. Names are opaque, so / is a character like others.
func matches(glob, text string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return err == nil && ok
}
