package rpc_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

var percents = regexp.MustCompile(`%[0-9A-F]{2}`)

// TestHiding: a secret is hidden in every form in which servers and libraries repeat it: within an address, a string of
// JSON, quotes of Go, a header with base64, whatever stands before and behind it there.
func TestHiding(t *testing.T) {
	for _, secret := range []string{"tok", "s3cr3t-token", "pa ss/w+rd&=?", `quo"te\d`, "<angle>&amp", "grüße-und-küsse", "be\x7fll\x01-token", "user:pass word"} {
		hide := rpc.Hiding([]string{secret, "another one"})
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(secret)
		plain, _ := json.Marshal(secret)
		forms := map[string]string{
			"as it is":     "x " + secret + " y",
			"of a query":   "https://h/?k=" + url.QueryEscape(secret) + "&b",
			"of a path":    "https://h/" + url.PathEscape(secret) + "/b",
			"lower case":   "https://h/?k=" + percents.ReplaceAllStringFunc(url.QueryEscape(secret), strings.ToLower),
			"JSON":         `{"k":` + string(plain) + `}`,
			"JSON as such": `{"k":"` + escaped + `"}`,
			"in quotes":    fmt.Sprintf("Get %q: no such host", "https://h/?k="+secret),
		}
		if len(secret) > 8 {
			for before := range 4 {
				for behind := range 3 {
					text := []byte(strings.Repeat("u", before) + secret + strings.Repeat("z", behind))
					forms[fmt.Sprintf("base64 %d %d", before, behind)] = "Basic " + base64.StdEncoding.EncodeToString(text) + " y"
					forms[fmt.Sprintf("base64 of URLs %d %d", before, behind)] = "v=" + base64.RawURLEncoding.EncodeToString(text)
				}
			}
		}
		for name, text := range forms {
			got := hide.Replace(text)
			if !strings.Contains(got, rpc.Hidden) || strings.Contains(got, secret) || len(got) > len(text)-len(secret)/2+len(rpc.Hidden) && len(secret) > 8 {
				t.Errorf("%s %q: %q becomes %q", name, secret, text, got)
			}
		}
	}
	if text := "nothing of the kind: token, secret, dG9r"; rpc.Hiding([]string{"tok3n", "abc"}).Replace(text) != text {
		t.Error("what is no secret is hidden")
	}
}
