package toolhive

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxDiscovery bounds ToolHive's discovery file, in bytes.
const maxDiscovery = 64 << 10

// guesses are the addresses of the API where nothing says more: the port of thv serve on this machine, and, seen from a
// container, also at the names that docker and podman give the machine.
var (
	guesses          = []string{"127.0.0.1:8080"}
	containerGuesses = []string{"host.docker.internal:8080", "host.containers.internal:8080"}
)

// An address is one where the API may be.
type address struct {
	from   string   // where it is said, for people
	base   *url.URL // of requests
	socket string   // the path of a unix socket, or empty

	// How a connection proves that ToolHive answers: it need not, where a person gave the address; it shows the nonce; or
	// it shows any nonce and belongs to our user, except that in a container it may belong to any.
	given    bool
	nonce    string
	anyOwner bool

	err error // why the discovery file gives none
}

// String is the address as a person writes it.
func (a address) String() string {
	if a.socket != "" {
		return "unix://" + a.socket
	}
	return a.base.Redacted()
}

// guess reports whether nothing says that ToolHive is there.
func (a address) guess() bool { return !a.given && a.nonce == "" && a.err == nil }

// certain reports whether secrets may be sent to an API that has proved itself.
func (a address) certain() bool { return !a.guess() || ownersKnown && !a.anyOwner }

// host is where the proxies of workloads listen, or empty for this machine.
func (a address) host() string {
	if a.socket != "" {
		return ""
	}
	return a.base.Hostname()
}

// addresses are those to try where nobody gave one, in the order of ToolHive's own clients.
func (o *Options) addresses() []address {
	var list []address
	if o.Discovery != "" {
		a, err := readDiscovery(o.Discovery)
		a.from, a.err = "the discovery file "+o.Discovery, err
		list = append(list, a)
	}
	hosts := o.hosts
	if hosts == nil && o.Container {
		hosts = slices.Concat(guesses, containerGuesses)
	} else if hosts == nil {
		hosts = guesses
	}
	for _, host := range hosts {
		list = append(list, address{from: "a guess", base: &url.URL{Scheme: "http", Host: host}, anyOwner: o.Container})
	}
	return list
}

// readDiscovery reads the file in which a running ToolHive gives the address of its API. Only we or root may have
// written it.
func readDiscovery(name string) (address, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return address{}, errors.New("it is a symbolic link")
	}
	if err != nil {
		return address{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return address{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return address{}, errors.New("it is not a regular file")
	case info.Mode().Perm()&0o022 != 0:
		return address{}, errors.New("others may write it")
	case ok && !isOurs(int(stat.Uid)):
		return address{}, fmt.Errorf("it belongs to another user (%d)", stat.Uid)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDiscovery+1))
	if err != nil {
		return address{}, err
	}
	return parseDiscovery(data)
}

// parseDiscovery checks the form of the file's content. The nonce proves later whether it is true.
func parseDiscovery(data []byte) (address, error) {
	var file struct{ URL, Nonce string }
	if len(data) > maxDiscovery {
		return address{}, fmt.Errorf("it is longer than %d bytes", maxDiscovery)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return address{}, fmt.Errorf("it cannot be read: %w", err)
	}
	a, err := parseAddress(file.URL)
	switch {
	case err != nil:
		return address{}, err
	case file.Nonce == "":
		return address{}, errors.New("it has no nonce")
	case a.socket == "" && (a.base.Scheme != "http" || !isLoopback(a.base.Hostname())):
		return address{}, errors.New("its url is not http at a loopback address")
	}
	a.nonce = file.Nonce
	return a, nil
}

// parseAddress reads an address of the API: http, https, or unix with the absolute path of a socket.
func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil {
		return address{}, errors.New("the address cannot be read")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
			return address{}, errors.New("the address is not one such as http://127.0.0.1:8080")
		}
		return address{base: &url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User, Path: strings.TrimRight(u.Path, "/")}}, nil
	case "unix":
		if u.Host != "" || !filepath.IsAbs(u.Path) || !fs.ValidPath(strings.TrimPrefix(u.Path, "/")) {
			return address{}, errors.New("the address of a socket is unix:// and an absolute path without dots, such as unix:///run/thv.sock")
		}
		return address{base: &url.URL{Scheme: "http", Host: "localhost"}, socket: u.Path}, nil
	case "npipe":
		return address{}, errors.New("named pipes cannot be used: start ToolHive's API on a port (thv serve) and give its address")
	}
	return address{}, errors.New("the address does not begin with http://, https:// or unix://")
}

// isLoopback reports whether a host is an IP address of this machine and nothing else.
func isLoopback(host string) bool { return net.ParseIP(host).IsLoopback() }

// A notFound says where ToolHive was looked for.
type notFound struct {
	tries  []string // every address, and what is wrong there
	broken bool     // something is wrong at one of them, rather than nothing there
}

func (e *notFound) Error() string {
	return "ToolHive was not found (" + strings.Join(e.tries, "; ") + ")"
}

// find opens the API at the address that a person gave, or else at the first one where it proves itself.
func (o *Options) find(ctx context.Context) (*api, error) {
	if o.URL != "" {
		a, err := parseAddress(o.URL)
		if err != nil {
			return nil, err
		}
		a.given, a.from = true, cmp.Or(o.URLFrom, "the settings")
		return o.open(ctx, a)
	}
	miss := &notFound{}
	for _, a := range o.addresses() {
		api, err := o.open(ctx, a)
		if err == nil {
			return api, nil
		}
		where := a.from
		if a.guess() {
			where = a.String()
		}
		miss.tries = append(miss.tries, fmt.Sprintf("%s: %v", where, err))
		// Any program may listen at a guess.
		miss.broken = miss.broken || !isAbsence(err) && !(a.guess() && errors.Is(err, errNotToolHive))
	}
	return nil, miss
}

// isAbsence reports whether an error says that nothing is there.
func isAbsence(err error) bool {
	_, noHost := errors.AsType[*net.DNSError](err)
	return noHost || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
