package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// readTLS reads which certificates to trust and which to present. Paths are relative to the configuration. A change of
// the files changes the server.
func (e *entry) readTLS(value json.RawMessage) error {
	m, err := decodeStrict[upstream.TLS](value, "ca", "cert", "key", "insecure")
	if err != nil {
		return err
	}
	if (m.Cert == "") != (m.Key == "") {
		return fmt.Errorf("cert and key belong together")
	}
	for _, path := range []*string{&m.CA, &m.Cert, &m.Key} {
		if *path == "" {
			continue
		}
		*path = e.reader.file.resolvePath(*path)
		data, err := e.reader.readFile(*path)
		if err != nil {
			return err
		}
		e.Files = append(e.Files, checksum(data, nil))
	}
	e.TLS = m
	return nil
}

// readOAuth reads how to sign in as a program.
func (e *entry) readOAuth(value json.RawMessage) error {
	m, err := decodeStrict[upstream.OAuth](value, "issuer", "token", "clientId", "clientSecret")
	if err != nil {
		return err
	}
	e.secrets.add(m.ClientSecret)
	if m.Issuer == "" || m.ClientID == "" || m.ClientSecret == "" {
		return fmt.Errorf("needs issuer, clientId and clientSecret")
	}
	for _, address := range []string{m.Issuer, m.Token} {
		if address == "" {
			continue
		}
		if err := (upstream.Endpoint{URL: address}).Check(); err != nil {
			return fmt.Errorf("issuer or token: %w", err)
		}
	}
	e.OAuth = &m
	return nil
}

// decodeStrict decodes an object that may have only the known members, which have the names of the fields of T.
func decodeStrict[T any](value json.RawMessage, known ...string) (v T, err error) {
	all, err := decode[map[string]json.RawMessage](value, "an object with "+strings.Join(known, ", "))
	if err != nil {
		return v, err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(known, key) {
			return v, unknownKey(key, known)
		}
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return v, fmt.Errorf("a member of it has the wrong type")
	}
	return v, nil
}

func unknownKey(key string, known []string) error {
	if near := nearest.Name(key, known); near != "" {
		return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown key %q; there are %s", key, strings.Join(known, ", "))
}
