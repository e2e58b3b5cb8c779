package toolhive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Bounds of a list of workloads.
const (
	maxWorkloads = 10_000
	maxName      = 256 // bytes
	maxFlaws     = 10  // that are told
)

// A Workload is a server as ToolHive lists it: what its API gives, of which only the name is certain to be there.
type Workload struct {
	Name          string            `json:"name"`
	URL           string            `json:"url"` // of ToolHive's proxy before the server, empty while there is none
	TransportType string            `json:"transport_type"`
	ProxyMode     string            `json:"proxy_mode"` // what the proxy speaks; older releases leave it out
	Status        string            `json:"status"`
	StatusContext string            `json:"status_context"` // why the status is what it is
	Created       string            `json:"created_at"`
	Group         string            `json:"group"`
	Labels        map[string]string `json:"labels"`
}

// inspector is the transport of a page for people that ToolHive runs like a server.
const inspector = "inspector"

// parseList reads an answer of the API: {"workloads": [...]}, where no workload at all is null. What it does not know
// it passes over, and a workload that cannot be read does not lose the others: it is a flaw. The list is sorted by
// name, because the API has no order, and names are unique.
func parseList(data []byte) (list []Workload, flaws []string, err error) {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, nil, fmt.Errorf("reading the list of workloads: %w", err)
	}
	raw, ok := answer["workloads"]
	if !ok {
		return nil, nil, fmt.Errorf("reading the list of workloads: there is no member workloads")
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, nil, fmt.Errorf("reading the list of workloads: %w", err)
	}
	if len(entries) > maxWorkloads {
		return nil, nil, fmt.Errorf("reading the list of workloads: it has %d, more than %d", len(entries), maxWorkloads)
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

func parseWorkload(raw json.RawMessage) (Workload, error) {
	var w Workload
	if err := json.Unmarshal(raw, &w); err != nil {
		return w, err
	}
	switch {
	case w.Name == "":
		return w, fmt.Errorf("it has no name")
	case len(w.Name) > maxName:
		return w, fmt.Errorf("its name is longer than %d bytes", maxName)
	}
	return w, nil
}
