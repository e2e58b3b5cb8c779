package signin

import "net/http"

// A Server is an MCP server to sign in to, as it is configured.
type Server struct {
	Name string       // in the configuration
	URL  string       // of its endpoint
	HTTP *http.Client // of [NewHTTP]

	ClientID, ClientSecret string // of a client that somebody has registered before; empty: none
	ClientMetadataURL      string // of the document that describes us (client ID metadata document); empty: none
	CallbackPort           int    // of the redirect URI, as it is registered; 0: any
	MetadataURL            string // of the authorization server's metadata; empty: the server says
	Issuer                 string // the only authorization server that is accepted; empty: any that the server names

	Scopes []string // to ask for, whatever the server names; nil: those of its refusal, or else those that it supports
	More   []string // to ask for in any case: granted before, or demanded since
}

// pinned reports whether the operator has chosen the authorization server. Otherwise the server has, which may be hostile.
func (s Server) pinned() bool { return s.MetadataURL != "" || s.Issuer != "" }
