package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/signin"
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

// An oauthEntry is how to sign in, as clients write it.
type oauthEntry struct {
	Issuer       string `json:"issuer"`
	Token        string `json:"token"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	CallbackPort int    `json:"callbackPort"`
	MetadataURL  string `json:"authServerMetadataUrl"`
	Scopes       scopes `json:"scopes"`
}

// scopes are an array, or words in a string.
type scopes []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *scopes) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*s = strings.Fields(text)
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// readOAuth reads how to sign in: as a program with issuer and clientSecret, or else as a person, who runs mcsh login.
func (e *entry) readOAuth(value json.RawMessage) error {
	m, err := decodeStrict[oauthEntry](value, "issuer", "token", "clientId", "clientSecret", "callbackPort", "authServerMetadataUrl", "scopes")
	if err != nil {
		return err
	}
	e.secrets.add(m.ClientSecret)
	for _, one := range []struct{ key, address string }{
		{"issuer", m.Issuer}, {"token", m.Token}, {"authServerMetadataUrl", m.MetadataURL},
	} {
		if one.address == "" {
			continue
		}
		if err := (upstream.Endpoint{URL: one.address}).Check(); err != nil {
			return fmt.Errorf("%s: %w", one.key, err)
		}
	}
	if m.Issuer != "" && m.ClientSecret != "" {
		return e.program(m)
	}
	return e.person(m)
}

func (e *entry) program(m oauthEntry) error {
	switch {
	case m.ClientID == "":
		return fmt.Errorf("issuer and clientSecret describe the sign-in of a program, which needs clientId")
	case m.CallbackPort != 0 || m.MetadataURL != "" || len(m.Scopes) > 0:
		return fmt.Errorf("issuer and clientSecret describe the sign-in of a program, which has no callbackPort, " +
			"authServerMetadataUrl and scopes; leave out issuer if people sign in")
	}
	e.OAuth = &upstream.OAuth{Issuer: m.Issuer, Token: m.Token, ClientID: m.ClientID, ClientSecret: m.ClientSecret}
	return nil
}

func (e *entry) person(m oauthEntry) error {
	switch {
	case m.Token != "":
		return fmt.Errorf("token belongs to the sign-in of a program, which needs issuer, clientId and clientSecret")
	case m.ClientSecret != "" && m.ClientID == "":
		return fmt.Errorf("clientSecret needs clientId")
	case m.ClientSecret != "" && m.MetadataURL == "":
		return fmt.Errorf("clientSecret needs authServerMetadataUrl, the address of the metadata of the authorization server " +
			"that gave it: otherwise the server could name another one, which would get it")
	case slices.ContainsFunc(m.Scopes, invalidScope):
		return fmt.Errorf("scopes: %q is not one scope: write each as a string of its own, without spaces, quotes and backslashes",
			texts.Cut(m.Scopes[slices.IndexFunc(m.Scopes, invalidScope)], 100))
	case m.CallbackPort < 0 || m.CallbackPort > 65535:
		return fmt.Errorf("callbackPort: want a port from 1 to 65535, got %d", m.CallbackPort)
	}
	e.SignIn = upstream.SignIn{
		ClientID: m.ClientID, ClientSecret: m.ClientSecret, CallbackPort: m.CallbackPort,
		MetadataURL: m.MetadataURL, Issuer: m.Issuer, Scopes: m.Scopes,
	}
	return nil
}

func invalidScope(scope string) bool { return !signin.ValidScope(scope) }

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
		member, err := json.Marshal(map[string]json.RawMessage{key: all[key]})
		if err != nil || json.Unmarshal(member, &v) != nil {
			return v, fmt.Errorf("%s cannot be %s", key, kindOf(all[key]))
		}
	}
	return v, nil
}

func unknownKey(key string, known []string) error {
	if near := nearest.Name(key, known); near != "" {
		return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown key %q; there are %s", key, strings.Join(known, ", "))
}
