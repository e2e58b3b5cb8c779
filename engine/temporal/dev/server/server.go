// Package server runs Temporal's own server for one machine, in this process, on a SQLite file or in memory. It listens without
// TLS and lets everybody in, so its address belongs on a loopback interface.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	engine "github.com/mcsh-dev/mcsh/engine/temporal"
)

// Options say where the server listens, and where it keeps what it knows.
type Options struct {
	Listen    string     // IP:PORT; empty is 127.0.0.1:7233; port 0 is a free one
	File      string     // a SQLite file, which is created; empty is memory
	Namespace string     // is created; empty is "default"
	Log       log.Logger // nil is none
}

const (
	clusterName = "active"
	retention   = 7 * 24 * time.Hour // how long an ended job is known
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
	c := configuration(ports, o.File)
	if err := prepare(c.Persistence.DataStores[sqlite.PluginName].SQL, o); err != nil {
		return nil, fmt.Errorf("preparing the database: %w", err)
	}
	internal, err := temporal.NewServer(
		temporal.WithConfig(c),
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

// Stop ends the server. What a file holds is there when it is started again.
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

func configuration(p *ports, file string) *config.Config {
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
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: 1, // SQLite has one writer
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: database(file)}},
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

func database(file string) *config.SQL {
	if file == "" {
		name := fmt.Sprintf("mcsh-%d-%d", os.Getpid(), time.Now().UnixNano()) // servers of one process share none
		return &config.SQL{PluginName: sqlite.PluginName, DatabaseName: name, ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"}}
	}
	return &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: file,
		ConnectAttributes: map[string]string{
			"mode":         "rw",
			"journal_mode": "wal",
			"locking_mode": "exclusive", // a second server on the same file fails
		},
	}
}

// prepare makes the tables in a file that does not exist yet, and the namespace.
func prepare(db *config.SQL, o Options) error {
	if o.File != "" {
		if err := createFile(o.File); err != nil {
			return err
		}
	}
	namespace, err := schema.NewNamespaceConfig(clusterName, o.Namespace, false, nil)
	if err != nil {
		return err
	}
	namespace.Detail.Config.Retention = durationpb.New(retention)
	return schema.CreateNamespaces(db, namespace)
}

// createFile makes a file with tables and without rows, unless it exists. It appears under its name when it is whole.
func createFile(name string) error {
	if _, err := os.Stat(name); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name())
	if err := fresh.Close(); err != nil {
		return err
	}
	db := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: fresh.Name(), ConnectAttributes: map[string]string{"mode": "rw"}}
	if err := schema.SetupSchema(db); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), name)
}
