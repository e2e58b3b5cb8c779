// Package oidc verifies tokens of an OpenID Connect issuer. It retries until it reaches the issuer, and follows changes of
// the issuer's keys. It knows nothing of the requests that carry tokens.
package oidc
