package server

import (
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql/driver"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql/session"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/tools/common/schema"
	"go.temporal.io/server/tools/sql"
)

var (
	names      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,52}$`) // of which Postgres knows 63 characters with that of the visibility
	errAddress = errors.New("the address of the database is wrong: write postgresql://USER@HOST:PORT/NAME, with a NAME of up to 52 letters and digits")
)

// onPostgres keeps what the server knows in the databases NAME and NAME_visibility.
func onPostgres(address string) (*database, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errAddress // that of the parser may have the password
	}
	query, err := url.ParseQuery(u.RawQuery)
	name := strings.TrimPrefix(u.Path, "/")
	if err != nil || u.Hostname() == "" || u.User.Username() == "" || !names.MatchString(name) {
		return nil, errAddress
	}
	attributes := map[string]string{}
	for key := range query {
		attributes[key] = query.Get(key)
	}
	password, _ := u.User.Password()
	// Each of the four services has these connections. Together they are fewer than the 97 that Postgres allows by default.
	of := func(name string, connections int) *config.SQL {
		return &config.SQL{
			PluginName:        postgresql.PluginNamePGX,
			ConnectAddr:       u.Host,
			ConnectProtocol:   "tcp",
			User:              url.User(u.User.Username()).String(), // Temporal escapes only the password
			Password:          password,
			DatabaseName:      name,
			ConnectAttributes: attributes,
			MaxConns:          connections,
			MaxIdleConns:      connections,
		}
	}
	db := &database{main: of(name, 16), visibility: of(name+"_visibility", 4), shards: 4}
	db.create = func(o Options) error {
		if err := createTables(db.main, "postgresql/v12/temporal", o.Log); err != nil {
			return err
		}
		return createTables(db.visibility, "postgresql/v12/visibility", o.Log)
	}
	return db, nil
}

// createTables makes a database unless there is one, and gives it the tables of this version of Temporal.
func createTables(c *config.SQL, name string, l log.Logger) error {
	if err := connects(c); err != nil {
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "3D000" { // there is no such database
			return err
		}
		missing := *c
		if err := sql.DoCreateDatabase(&missing, "", l); err != nil {
			return err
		}
	}
	db, err := sql.NewConnection(c, l)
	if err != nil {
		return err
	}
	defer db.Close()
	// Both do nothing where it is done.
	if err := schema.NewSetupSchemaTask(db, &schema.SetupConfig{InitialVersion: "0.0"}, l).Run(); err != nil {
		return err
	}
	return schema.NewUpdateSchemaTask(db, &schema.UpdateConfig{SchemaName: name}, l).Run()
}

// connects says why a database cannot be reached, which later errors of Temporal do not.
func connects(c *config.SQL) error {
	s, err := session.NewSession(c, &driver.PGXDriver{}, resolver.NewNoopResolver())
	if err != nil {
		return err
	}
	s.Close()
	return nil
}
