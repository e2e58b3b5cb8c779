package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// Variables that replace the flags of sign-ins.
const (
	tokenKeyVariable       = "MCSH_TOKEN_KEY_FILE"
	clientMetadataVariable = "MCSH_CLIENT_METADATA_URL"
)

// loginFlags say where tokens of sign-ins are sealed, and how mcsh introduces itself to authorization servers.
type loginFlags struct {
	keyFile        string
	clientMetadata string
}

func (l *loginFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.keyFile, "token-key-file", "", "file with the key (32 bytes) that seals the tokens of mcsh login (default: the keyring; $"+tokenKeyVariable+")")
	f.StringVar(&l.clientMetadata, "client-metadata-url", "", "address of the document that describes this client to authorization servers ($"+clientMetadataVariable+")")
	_ = cmd.MarkFlagFilename("token-key-file") // the flag exists
}

// stores are the stores of logins that a program has opened, by their settings. They close with the program.
type stores struct {
	mu   sync.Mutex
	open map[[2]string]*logins.Store // guarded by mu
}

// openLogins opens the store of logins; nil without a state directory.
func (p *program) openLogins(s settings) (*logins.Store, error) {
	s.keeps = true // commands that keep nothing else, such as doctor, use logins too
	state, _ := p.statePath(s)
	if state == "" {
		return nil, nil
	}
	dir, keyFile := filepath.Join(state, "logins"), cmp.Or(s.login.keyFile, p.env[tokenKeyVariable])
	p.stores.mu.Lock()
	defer p.stores.mu.Unlock()
	key := [2]string{dir, keyFile}
	if store := p.stores.open[key]; store != nil {
		return store, nil
	}
	store, err := logins.Open(dir, logins.Options{KeyFile: keyFile, Keyring: p.keyring()})
	if err != nil {
		return nil, configError("fix that, or name another state directory with --state; docs/sign-in.md says more", err)
	}
	if p.stores.open == nil {
		p.stores.open = map[[2]string]*logins.Store{}
	}
	p.stores.open[key] = store
	return store, nil
}

// closeStores waits for refreshes that have begun.
func (p *program) closeStores() {
	p.stores.mu.Lock()
	defer p.stores.mu.Unlock()
	for _, store := range p.stores.open {
		if err := store.Close(); err != nil {
			fmt.Fprintln(p.stderr, "warning:", err)
		}
	}
}

// keyring returns the keyring of the user; nil: the environment has none. Without a session bus the library would start one.
func (p *program) keyring() logins.Keyring {
	if runtime.GOOS == "darwin" && p.env["HOME"] == os.Getenv("HOME") || p.env["DBUS_SESSION_BUS_ADDRESS"] != "" {
		return logins.System{}
	}
	if dir := p.env["XDG_RUNTIME_DIR"]; dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "bus")); err == nil {
			return logins.System{}
		}
	}
	return nil
}

// noteLogins says if the directory of sign-ins cannot be used, which concerns only hosted servers.
func (p *program) noteLogins(s settings) {
	if len(p.configFiles(s)) == 0 {
		return
	}
	if store, err := p.openLogins(s); err == nil && store != nil && store.Usable() != nil {
		fmt.Fprintf(p.stderr, "mcsh: servers are called without sign-ins (--state %s if this is intended): %v\n", stateOff, store.Usable())
	}
}
