package gateway

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzNames: a rule that is accepted gives names that clients take, the same for the same tool, and with a separator other ones
// for other tools.
func FuzzNames(f *testing.F) {
	for _, rule := range []string{DefaultNames, "{tool}", "{server}-{tool}", "{tool}__{server}", "x{server}{tool}y", "{server}_a_{tool}"} {
		for _, parts := range [][4]string{{"a", "b", "a_", "b"}, {"a__b", "c", "a", "b__c"}, {"a b", "c", "a_b", "c"}, {"a_a", "x", "a", "a_x"}, {"{tool}", "{server}", "é", "\xff"}} {
			f.Add(rule, parts[0], parts[1], parts[2], parts[3])
		}
	}
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	hashed := regexp.MustCompile(`_[0-9a-f]{8}$`)
	f.Fuzz(func(t *testing.T, text, server, tool, server2, tool2 string) {
		rule, err := ParseNameRule(text)
		if err != nil || server == "" || tool == "" || server2 == "" || tool2 == "" || strings.ContainsAny(server+server2+tool+tool2, "\x00") {
			return
		}
		a, b := rule.name(server, tool), rule.name(server2, tool2)
		if !fits.MatchString(a) || a != rule.name(server, tool) {
			t.Errorf("%q makes %q of %q and %q", text, a, server, tool)
		}
		if same := server == server2 && tool == tool2; a == b && !same && rule.separator != "" && !hashed.MatchString(a) {
			t.Errorf("%q makes %q of %q and %q, and of %q and %q", text, a, server, tool, server2, tool2)
		}
	})
}
