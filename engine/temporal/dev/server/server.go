// Package server runs Temporal's own server for one machine, in this process, on a SQLite file, on PostgreSQL or in memory. It listens
// without TLS and lets everybody in, so its address belongs on a loopback interface.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"

	engine "github.com/mcsh-dev/mcsh/engine/temporal"
)

// Options say where the server listens, and where it keeps what it knows.
type Options struct {
	Listen    string     // IP:PORT; empty is 127.0.0.1:7233; port 0 is a free one
	Database  string     // a SQLite file or postgresql://USER@HOST:PORT/NAME, which is created; empty is memory
	Namespace string     // is created; empty is "default"
	Log       log.Logger // nil is none
}

const (
	clusterName = "active"
	usableIn    = time.Minute
)

// A Server is Temporal in this process.
type Server struct {
	Address string // HOST:PORT for clients

	internal temporal.Server
}

// Start starts a server, and returns when its namespace can be used.
func Start(ctx context.Context, o Options) (*Server, error) {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:7233")
	o.Namespace = cmp.Or(o.Namespace, "default")
	if o.Log == nil {
		o.Log = log.NewNoopLogger()
	}
	ports, err := choosePorts(o.Listen)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(o.Database)
	if err != nil {
		return nil, err
	}
	if err := db.prepare(o); err != nil {
		return nil, fmt.Errorf("preparing the database: %w", err)
	}
	internal, err := temporal.NewServer(
		temporal.WithConfig(configuration(ports, db)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(ports.hosts()),
		temporal.WithLogger(o.Log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
	)
	if err != nil {
		return nil, err
	}
	s := &Server{Address: ports.dial, internal: internal}
	if err := internal.Start(); err != nil {
		return nil, errors.Join(err, internal.Stop())
	}
	if err := s.usable(ctx, o.Namespace); err != nil {
		return nil, errors.Join(err, internal.Stop())
	}
	return s, nil
}

// Stop ends the server. What a database holds is there when it is started again.
func (s *Server) Stop() error { return s.internal.Stop() }

// usable waits until a client can use the namespace.
func (s *Server) usable(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, usableIn)
	defer cancel()
	for {
		e, err := engine.Dial(ctx, engine.Options{Address: s.Address, Namespace: namespace})
		if err == nil {
			e.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not get ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ports are those of the services. Only the frontend is for clients; the others listen on 127.0.0.1.
type ports struct {
	ip       string // of the frontend
	dial     string // address of the frontend for this machine
	services map[primitives.ServiceName]int
}

func choosePorts(listen string) (*ports, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("%q is no address to listen on: %w", listen, err)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return nil, fmt.Errorf("%q is no address to listen on: give IP:PORT", listen)
	}
	p := &ports{ip: host, services: map[primitives.ServiceName]int{}}
	// All are held until each is known, so that no two are the same.
	for _, service := range temporal.DefaultServices {
		at := "127.0.0.1:0"
		if primitives.ServiceName(service) == primitives.FrontendService {
			at = net.JoinHostPort(host, port)
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		p.services[primitives.ServiceName(service)] = l.Addr().(*net.TCPAddr).Port
	}
	if ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	p.dial = net.JoinHostPort(host, strconv.Itoa(p.services[primitives.FrontendService]))
	return p, nil
}

func (p *ports) hosts() map[primitives.ServiceName]static.Hosts {
	hosts := map[primitives.ServiceName]static.Hosts{}
	for service, port := range p.services {
		hosts[service] = static.SingleLocalHost(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	hosts[primitives.FrontendService] = static.SingleLocalHost(p.dial)
	return hosts
}

func configuration(p *ports, db *database) *config.Config {
	services := map[string]config.Service{}
	for service, port := range p.services {
		rpc := config.RPC{GRPCPort: port, BindOnLocalHost: true}
		if service == primitives.FrontendService {
			rpc = config.RPC{GRPCPort: port, BindOnIP: p.ip}
		}
		services[string(service)] = config.Service{RPC: rpc}
	}
	off := config.NamespaceDefaults{}
	off.Archival.History.State, off.Archival.Visibility.State = "disabled", "disabled"
	return &config.Config{
		Services:     services,
		PublicClient: config.PublicClient{HostPort: p.dial},
		Persistence: config.Persistence{
			DefaultStore:     "main",
			VisibilityStore:  "visibility",
			NumHistoryShards: db.shards,
			DataStores:       map[string]config.DataStore{"main": {SQL: db.main}, "visibility": {SQL: db.visibility}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: p.dial},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		NamespaceDefaults:   off,
	}
}
