package logins

import "time"

// A Key names a login. Two accounts on one address are two logins, because their servers have two names.
type Key struct {
	Server   string `json:"server"`   // its name in the configuration
	Resource string `json:"resource"` // canonical URI of the server, as the authorization server knows it
	Issuer   string `json:"issuer"`   // of the authorization server
}

// A Login is a person's sign-in to a server, with its tokens.
type Login struct {
	Key
	Account string    `json:"account,omitzero"` // who has signed in, for people; empty: the issuer does not say
	Scopes  []string  `json:"scopes,omitzero"`  // granted
	Made    time.Time `json:"made"`

	AccessToken  string    `json:"accessToken"`
	RefreshToken string    `json:"refreshToken,omitzero"`
	Expiry       time.Time `json:"expiry,omitzero"` // of AccessToken; zero: unknown

	Client Client `json:"client"`

	TokenEndpoint      string `json:"tokenEndpoint"`
	RevocationEndpoint string `json:"revocationEndpoint,omitzero"`
}

// A Client is what the authorization server knows us as.
type Client struct {
	ID         string    `json:"id"`
	Secret     string    `json:"secret,omitzero"`
	AuthMethod string    `json:"authMethod,omitzero"` // none, client_secret_basic or client_secret_post
	Expiry     time.Time `json:"expiry,omitzero"`     // of Secret, as dynamic registration gave it; zero: never
}
