package signin

import "context"

// At returns the place where a person signs in for a resource at an issuer that the operator has named.
func At(ctx context.Context, s Server, resource string) (*Target, error) {
	found, err := findIssuer(ctx, s.HTTP, s.Issuer)
	if err != nil {
		return nil, err
	}
	return &Target{Issuer: found.Issuer, Resource: resource, Scopes: s.Scopes, server: s, issuer: found}, nil
}
