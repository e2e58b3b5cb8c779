package oidc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/internal/oidctest"
)

// TestExactClaims: claims count by their exact names, and a token that can be read in two ways admits nobody. Each
// case adds members to claims that are good, or stands for them.
func TestExactClaims(t *testing.T) {
	issuer := oidctest.New(t)
	i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience, Name: "email"})
	ready(t, i)
	now := time.Now().Unix()
	iss, sub, aud, exp := fmt.Sprintf(`"iss":%q`, issuer.URL), `"sub":"u-1"`, fmt.Sprintf(`"aud":%q`, audience), fmt.Sprintf(`"exp":%d`, now+600)
	good := strings.Join([]string{iss, sub, aud, exp}, ",")
	const twice, reads = "is given twice", "which reads as"
	for _, test := range []struct {
		name, claims string
		head         map[jose.HeaderKey]any
		want         string // empty: the token is taken
	}{
		{"as they should be", good, nil, ""},
		{"other claims in any letters", good + `,"Role":1,"role":2,"NAME":3`, nil, ""},
		{"nested ones", good + `,"act":{"SUB":"x","sub":"y","sub":"z"},"realm_access":[{"ISS":1}]`, nil, ""},
		{"escapes of letters", strings.Join([]string{iss, aud, exp, `"\u0073ub":"u-1"`}, ","), nil, ""},

		{"SUB behind sub", good + `,"SUB":"victim"`, nil, reads},
		{"SUB before sub", `"SUB":"victim",` + good, nil, reads},
		{"SUB alone", strings.Join([]string{iss, aud, exp, `"SUB":"victim"`}, ","), nil, reads},
		{"AUD alone", strings.Join([]string{iss, sub, exp, fmt.Sprintf(`"AUD":%q`, audience)}, ","), nil, reads},
		{"AUD beside another aud", strings.Join([]string{iss, sub, exp, `"aud":"other"`, fmt.Sprintf(`"Aud":%q`, audience)}, ","), nil, reads},
		{"Exp beside one that has passed", strings.Join([]string{iss, sub, aud, `"exp":1`, fmt.Sprintf(`"Exp":%d`, now+600)}, ","), nil, reads},
		{"ISS beside another iss", strings.Join([]string{sub, aud, exp, `"iss":"https://evil.example"`, fmt.Sprintf(`"ISS":%q`, issuer.URL)}, ","), nil, reads},
		{"Nbf", good + fmt.Sprintf(`,"nbf":%d,"Nbf":1`, now+900), nil, reads},
		{"a long s", good + `,"ſub":"victim"`, nil, reads},
		{"a long s in iss", good + `,"iſs":"x"`, nil, reads},
		{"escapes of other letters", good + `,"\u0053UB":"victim"`, nil, reads},
		{"Scope", good + `,"Scope":"mcp"`, nil, reads},
		{"jti", good + `,"JTI":"x"`, nil, reads},
		{"azp", good + `,"Azp":"x"`, nil, reads},
		{"the claim of the name", good + `,"Email":"root@example.com"`, nil, reads},
		{"sub twice", good + `,"sub":"victim"`, nil, twice},
		{"sub twice, once in escapes", good + `,"s\u0075b":"victim"`, nil, twice},
		{"the claim of the name twice", good + `,"email":"a","email":"b"`, nil, twice},
		{"another claim twice", good + `,"x":1,"x":1`, nil, twice},

		{"TYP beside typ", good, map[jose.HeaderKey]any{"typ": "logout+jwt", "TYP": "JWT"}, "in its head"},
		{"TYP alone", good, map[jose.HeaderKey]any{"Typ": "logout+jwt"}, "in its head"},
		{"a logout token without a type", good + `,"events":{"http://schemas.openid.net/event/backchannel-logout":{}}`, nil, "reports events"},
		{"a logout token in other letters", good + `,"Events":{"http://schemas.openid.net/event/backchannel-logout":{}}`, nil, reads},
	} {
		t.Run(test.name, func(t *testing.T) {
			identity, err := i.Verify(t.Context(), issuer.SignText(t, "1", "{"+test.claims+"}", test.head))
			refusal, refused := errors.AsType[*auth.Refusal](err)
			switch {
			case test.want == "" && (err != nil || identity.ID != "oidc "+issuer.URL+" u-1"):
				t.Errorf("got %+v, %v", identity, err)
			case test.want != "" && (!refused || refusal.Status != 401 || !strings.Contains(refusal.Text, test.want)):
				t.Errorf("got %+v, %v, want %q", identity, err, test.want)
			}
		})
	}
}

// FuzzClaims reads the claims of each token that is taken by their exact names: the caller is who "sub" names, the issuer
// and the audience are ours.
func FuzzClaims(f *testing.F) {
	issuer := oidctest.New(f)
	i, err := oidc.New(oidc.Options{Issuer: issuer.URL, Audience: audience})
	if err != nil {
		f.Fatal(err)
	}
	if err := i.Check(f.Context()); err != nil {
		f.Fatal(err)
	}
	good := fmt.Sprintf(`"iss":%q,"aud":%q,"exp":%d`, issuer.URL, audience, time.Now().Unix()+3600)
	for _, more := range []string{`"sub":"a"`, `"SUB":"a"`, `"sub":"a","SUB":"b"`, `"ſub":"a"`, `"sub":"a","x":{"sub":"b"}`, `"sub":"a"}{"sub":"b"`} {
		f.Add(more)
	}
	f.Fuzz(func(t *testing.T, more string) {
		payload := "{" + good + "," + more + "}"
		identity, err := i.Verify(t.Context(), issuer.SignText(t, "1", payload, nil))
		if err != nil {
			return
		}
		var all map[string]any
		if err := json.Unmarshal([]byte(payload), &all); err != nil {
			t.Fatalf("%s is taken: %v", payload, err)
		}
		sub, _ := all["sub"].(string)
		if identity.ID != "oidc "+issuer.URL+" "+sub || all["iss"] != issuer.URL || all["aud"] != audience {
			t.Errorf("%s is %+v", payload, identity)
		}
	})
}
