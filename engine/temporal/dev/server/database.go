package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	schema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

const retention = 7 * 24 * time.Hour // how long an ended job is known

// A database is where the server keeps what it knows.
type database struct {
	main, visibility *config.SQL // visibility has the lists of jobs
	shards           int32       // that are written at the same time; stays as it is for the life of the database
	create           func(Options) error
}

func openDatabase(name string) (*database, error) {
	switch {
	case name == "":
		name = fmt.Sprintf("mcsh-%d-%d", os.Getpid(), time.Now().UnixNano()) // servers of one process share none
		return onSQLite(name, map[string]string{"mode": "memory", "cache": "shared"}, func(Options) error { return nil }), nil
	case strings.HasPrefix(name, "postgresql://"), strings.HasPrefix(name, "postgres://"):
		return onPostgres(name)
	default:
		return onSQLite(name, map[string]string{
			"mode":         "rw",
			"journal_mode": "wal",
			"locking_mode": "exclusive", // a second server on the same file fails
		}, createFile), nil
	}
}

func onSQLite(name string, attributes map[string]string, create func(Options) error) *database {
	db := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: name, ConnectAttributes: attributes}
	return &database{main: db, visibility: db, shards: 1, create: create} // SQLite has one writer
}

// prepare makes the tables of a database that has none yet, and the namespace.
func (db *database) prepare(o Options) error {
	if err := db.create(o); err != nil {
		return err
	}
	namespace, err := schema.NewNamespaceConfig(clusterName, o.Namespace, false, nil)
	if err != nil {
		return err
	}
	namespace.Detail.Config.Retention = durationpb.New(retention)
	return schema.CreateNamespaces(db.main, namespace) // in any SQL database
}

// createFile makes a file with tables and without rows, unless it exists. It appears under its name when it is whole.
func createFile(o Options) error {
	name := o.Database
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
