package toolhive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Where the API is guessed to be: the port of thv serve, and those that older desktop apps took one of.
const (
	usualPort = 8080
	firstPort = 50000
	lastPort  = 50100

	scanWait    = 2 * time.Second
	scanAtOnce  = 32
	resolveWait = time.Second
)

// usualHosts are where the API is guessed to be, and containerHosts where it is besides, seen from a container: the
// names that docker and podman give the machine.
var (
	usualHosts     = []string{"127.0.0.1"}
	containerHosts = []string{"host.docker.internal", "host.containers.internal"}
)

// A try is a place that was looked at in vain.
type try struct {
	where string
	guess bool
	err   error
}

// A notFound says where ToolHive was looked for.
type notFound struct{ tries []try }

// Error names every place and what was wrong there.
func (e *notFound) Error() string {
	var list []string
	for _, t := range e.tries {
		list = append(list, fmt.Sprintf("%s: %v", t.where, t.err))
	}
	return "ToolHive was not found (" + strings.Join(list, "; ") + ")"
}

// nothing reports whether there is nobody, rather than something wrong. At a guess anybody may be, which is nothing
// wrong: the usual port is one that many programs use.
func (e *notFound) nothing() bool {
	return !slices.ContainsFunc(e.tries, func(t try) bool {
		return !isAbsence(t.err) && !(t.guess && errors.Is(t.err, errNotToolHive))
	})
}

// isAbsence reports whether an error says that there is nobody.
func isAbsence(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errNobody)
}

// errNobody says that a scan found nothing.
var errNobody = errors.New("nothing answers")

// find looks for the API in the order of ToolHive's own clients, and asks for its version.
func (o *Options) find(ctx context.Context) (*api, string, error) {
	if o.URL != "" {
		p, err := parsePlace(o.URL)
		if err != nil {
			return nil, "", err
		}
		p.given, p.how = true, cmp.Or(o.URLFrom, "the settings")
		return o.ask(ctx, p)
	}
	miss := &notFound{}
	attempt := func(t try, p place) (*api, string, error) {
		a, version, err := (*api)(nil), "", t.err
		if err == nil {
			a, version, err = o.ask(ctx, p)
		}
		if t.err = err; err != nil {
			miss.tries = append(miss.tries, t)
		}
		return a, version, err
	}
	if o.Discovery != "" {
		p, err := readDiscovery(o.Discovery)
		if a, version, err := attempt(try{where: "the discovery file " + o.Discovery, err: err}, p); err == nil {
			return a, version, nil
		}
	}
	for _, host := range o.hosts(ctx) {
		p := guess(host, o.usual())
		if a, version, err := attempt(try{where: p.String(), guess: true}, p); err == nil {
			return a, version, nil
		}
	}
	if o.Container {
		a, version, err := o.scan(ctx)
		if err == nil {
			return a, version, nil
		}
		miss.tries = append(miss.tries, try{where: fmt.Sprintf("ports %d to %d", o.scanned().first, o.scanned().last), err: err})
	}
	return nil, "", miss
}

func (o *Options) usual() int { return cmp.Or(o.usualPort, usualPort) }

// ports are a range of them.
type ports struct{ first, last int }

func (o *Options) scanned() ports {
	if o.scanPorts != (ports{}) {
		return o.scanPorts
	}
	return ports{firstPort, lastPort}
}

func guess(host string, port int) place {
	return place{how: "a guess", base: &url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(port))}}
}

// ask makes sure that ToolHive answers at a place.
func (o *Options) ask(ctx context.Context, p place) (*api, string, error) {
	a := newAPI(p, trust{anyOwner: o.Container}, o.APIHeaders, o.Proxy)
	var version string
	var err error
	if !p.given {
		err = a.knock(ctx)
	}
	if err == nil {
		version, err = a.version(ctx)
	}
	if err != nil {
		a.close()
		return nil, "", err
	}
	return a, version, nil
}

// hosts are where the API is guessed to be. Names that nothing is known of are left out.
func (o *Options) hosts(ctx context.Context) []string {
	if o.Host != "" {
		return []string{o.Host}
	}
	if !o.Container {
		return usualHosts
	}
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
	defer cancel()
	hosts := slices.Clone(usualHosts)
	for _, name := range containerHosts {
		if found, err := net.DefaultResolver.LookupHost(ctx, name); err == nil && len(found) > 0 {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// scan tries many ports at the same time. Where several ToolHives answer, none is taken.
func (o *Options) scan(ctx context.Context) (*api, string, error) {
	ctx, cancel := context.WithTimeout(ctx, scanWait)
	defer cancel()
	type answer struct {
		api     *api
		version string
	}
	var (
		mu    sync.Mutex
		found []answer
		wg    sync.WaitGroup
		seats = make(chan struct{}, scanAtOnce)
	)
	for _, host := range o.hosts(ctx) {
		for port := o.scanned().first; port <= o.scanned().last; port++ {
			wg.Go(func() {
				seats <- struct{}{}
				defer func() { <-seats }()
				if a, version, err := o.ask(ctx, guess(host, port)); err == nil {
					mu.Lock()
					defer mu.Unlock()
					found = append(found, answer{a, version})
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(found, func(a, b answer) int { return cmp.Compare(a.api.place.String(), b.api.place.String()) })
	for _, other := range found {
		if other.api.seen() != found[0].api.seen() {
			for _, a := range found {
				a.api.close()
			}
			return nil, "", fmt.Errorf("several ToolHives answer, at %s and %s: say which one is meant",
				found[0].api.place, other.api.place)
		}
	}
	if len(found) == 0 {
		return nil, "", errNobody
	}
	for _, same := range found[1:] {
		same.api.close()
	}
	return found[0].api, found[0].version, nil
}
