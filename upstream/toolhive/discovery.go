package toolhive

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// maxDiscovery bounds ToolHive's discovery file, in bytes.
const maxDiscovery = 64 << 10

// readDiscovery reads the file in which a running ToolHive says where its API is. What it says is not believed: it is
// checked by its form here, and whoever answers there has to show the nonce.
func readDiscovery(name string) (place, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return place{}, err
	}
	if !info.Mode().IsRegular() {
		return place{}, fmt.Errorf("%s is not a regular file", name)
	}
	if err := private(info); err != nil {
		return place{}, fmt.Errorf("%s: %w", name, err)
	}
	f, err := os.Open(name)
	if err != nil {
		return place{}, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return place{}, fmt.Errorf("%s was replaced while it was read", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDiscovery+1))
	if err != nil {
		return place{}, err
	}
	p, err := parseDiscovery(data)
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", name, err)
	}
	p.how = "the discovery file " + name
	return p, nil
}

// parseDiscovery reads the content of the file.
func parseDiscovery(data []byte) (place, error) {
	var file struct{ URL, Nonce string }
	if len(data) > maxDiscovery {
		return place{}, fmt.Errorf("it is longer than %d bytes", maxDiscovery)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return place{}, fmt.Errorf("it cannot be read: %w", err)
	}
	p, err := parsePlace(file.URL)
	switch {
	case err != nil:
		return place{}, err
	case file.Nonce == "":
		return place{}, fmt.Errorf("it has no nonce")
	case p.socket == "" && (p.base.Scheme != "http" || !isLoopbackIP(p.base.Hostname())):
		return place{}, fmt.Errorf("its url is not http at a loopback address")
	}
	p.nonce = file.Nonce
	return p, nil
}

func isLoopbackIP(host string) bool { return net.ParseIP(host) != nil && isLoopback(host) }

// A place is where the API may be.
type place struct {
	how    string   // who says so, for people
	base   *url.URL // of requests
	socket string   // the path of a unix socket, or empty
	nonce  string   // that whoever answers has to show, if it is known
	given  bool     // a person said so: it need not be verified
}

// String is the place as a person writes it.
func (p place) String() string {
	if p.socket != "" {
		return "unix://" + p.socket
	}
	return p.base.Redacted()
}

// host is where the proxies of workloads listen, if not here.
func (p place) host() string {
	if p.socket != "" {
		return ""
	}
	return p.base.Hostname()
}

// parsePlace reads an address of the API: http, https, or unix with the absolute path of a socket.
func parsePlace(address string) (place, error) {
	u, err := url.Parse(address)
	if err != nil {
		return place{}, fmt.Errorf("the address cannot be read")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
			return place{}, fmt.Errorf("the address is not one such as http://127.0.0.1:8080")
		}
		base := &url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User, Path: strings.TrimRight(u.Path, "/")}
		return place{base: base}, nil
	case "unix":
		if u.Host != "" || !filepath.IsAbs(u.Path) || !fs.ValidPath(strings.TrimPrefix(u.Path, "/")) {
			return place{}, fmt.Errorf("the address of a socket is unix:// and an absolute path without dots, such as unix:///run/thv.sock")
		}
		return place{base: &url.URL{Scheme: "http", Host: "localhost"}, socket: u.Path}, nil
	case "npipe":
		return place{}, fmt.Errorf("named pipes cannot be used: let ToolHive serve its API on a port (thv serve) and give its address")
	}
	return place{}, fmt.Errorf("the address does not begin with http://, https:// or unix://")
}

// ParseURL checks an address of the API as a person gives it.
func ParseURL(address string) error {
	_, err := parsePlace(address)
	return err
}
