package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// tlsMembers are those of "tls". The files count for whether the server has changed.
type tlsMembers struct {
	CA       string `json:"ca"`
	Cert     string `json:"cert"`
	Key      string `json:"key"`
	Insecure bool   `json:"insecure"`
}

// readTLS takes whom to trust and as whom to appear. Paths are relative to the configuration.
func (e *entry) readTLS(value json.RawMessage) error {
	var m tlsMembers
	if err := strict(value, &m, "ca", "cert", "key", "insecure"); err != nil {
		return err
	}
	if (m.Cert == "") != (m.Key == "") {
		return fmt.Errorf("cert and key belong together")
	}
	for _, path := range []*string{&m.CA, &m.Cert, &m.Key} {
		if *path == "" {
			continue
		}
		*path = e.reader.file.beside(*path)
		data, err := e.reader.readFile(*path)
		if err != nil {
			return err
		}
		e.Files = append(e.Files, sum(content{data: data}))
	}
	e.TLS = upstream.TLS{CA: m.CA, Cert: m.Cert, Key: m.Key, Insecure: m.Insecure}
	return nil
}

// oauthMembers are those of "oauth".
type oauthMembers struct {
	Issuer       string `json:"issuer"`
	Token        string `json:"token"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

// readOAuth takes how to sign in as a program.
func (e *entry) readOAuth(value json.RawMessage) error {
	var m oauthMembers
	if err := strict(value, &m, "issuer", "token", "clientId", "clientSecret"); err != nil {
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
	e.OAuth = &upstream.OAuth{Issuer: m.Issuer, Token: m.Token, ClientID: m.ClientID, ClientSecret: m.ClientSecret}
	return nil
}

// strict decodes an object that may have these members and no others.
func strict(value json.RawMessage, into any, known ...string) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(value, &all); err != nil || isNull(value) {
		return fmt.Errorf("want an object with %s, got %s", strings.Join(known, ", "), kindOf(value))
	}
	for key := range all {
		if slices.Contains(known, key) {
			continue
		}
		if near := nearest.Name(key, known); near != "" {
			return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
		}
		return fmt.Errorf("unknown key %q; there are %s", key, strings.Join(known, ", "))
	}
	if err := json.NewDecoder(bytes.NewReader(value)).Decode(into); err != nil {
		return fmt.Errorf("a member of it has the wrong type")
	}
	return nil
}
