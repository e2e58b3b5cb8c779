// Package oidc lets callers in by the tokens of an OpenID Connect issuer. It looks for the issuer until it is found, and
// for its keys as they change, and knows nothing of the requests that tokens come in.
package oidc
