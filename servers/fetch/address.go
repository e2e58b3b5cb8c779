package fetch

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
)

// hosts is a list of patterns of host names, in which "*" stands for any text.
type hosts []string

// newHosts checks the patterns.
func newHosts(globs []string) (hosts, error) {
	var list hosts
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil || g == "" || strings.ContainsAny(g, "/:@") && net.ParseIP(g) == nil {
			return nil, fmt.Errorf("option allow_hosts: %q is not a pattern of a host name, such as \"*.example.com\"", g)
		}
		list = append(list, canonicalHost(g))
	}
	return list, nil
}

// match reports whether host, a name or an address without a port, is listed.
func (h hosts) match(host string) bool {
	host = canonicalHost(host)
	return slices.ContainsFunc(h, func(g string) bool { ok, err := path.Match(g, host); return ok && err == nil })
}

func canonicalHost(h string) string {
	return strings.TrimSuffix(strings.ToLower(h), ".")
}
