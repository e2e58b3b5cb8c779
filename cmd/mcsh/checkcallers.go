package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/auth/tokens"
)

// checkCallers says whether those can come in who may call over HTTP, as far as variables name them.
func checkCallers(ctx context.Context, d *diagnosis) []finding {
	var found []finding
	if path := d.program.env[tokensVariable]; path != "" {
		file, err := tokens.Open(path, tokens.Options{Told: func(text string) {
			found = append(found, finding{Status: statusWarning, Text: text})
		}})
		if err != nil {
			found = append(found, finding{Status: statusFailed, Text: fmt.Sprintf("$%s: %v", tokensVariable, err), Hint: tokens.Hint(err)})
		} else {
			found = append(found, finding{Status: statusOK, Text: fmt.Sprintf("%s is read, tokens: %d", path, file.Len())})
		}
	}
	address := d.program.env[issuerVariable]
	if address == "" {
		return found
	}
	issuer, err := oidc.New(oidc.Options{Issuer: address, Audience: d.program.env[audienceVariable], Proxy: http.ProxyFromEnvironment})
	if err == nil {
		err = issuer.Check(ctx)
	}
	if err != nil {
		return append(found, finding{
			Status: statusFailed, Text: fmt.Sprintf("$%s: %v", issuerVariable, err),
			Hint: "give the issuer as its tokens name it (iss), and $" + audienceVariable + "; docs/authentication.md says more",
		})
	}
	return append(found, finding{Status: statusOK, Text: "the issuer " + address + " answers, and its keys can be had"})
}
