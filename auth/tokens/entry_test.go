package tokens

import (
	"strings"
	"testing"
	"time"
)

const anyHash = "sha256:c685deee4849d6c3a09663bfb56df5081433b36222d5c27ced87a49780ee643b"

// TestParse: what is wrong is said of each line, and no line is quoted.
func TestParse(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"a line", "alice " + anyHash + "\n", ""},
		{"no newline at the end", "alice " + anyHash, ""},
		{"comments, blank lines, tabs and returns", "# who\r\n\n alice\t" + anyHash + " # the first\r\n", ""},
		{"upper case", "alice sha256:" + strings.ToUpper(anyHash[7:]), ""},
		{"an end", "alice " + anyHash + " expires=2027-01-31T00:00:00Z", ""},
		{"a comment alone", "# nobody yet\n", ""},
		{"nothing", "", "it is empty"},
		{"a name alone", "\nalice\n", "line 2: it has 1 words"},
		{"too many words", "alice " + anyHash + " expires=2027-01-31T00:00:00Z groups=dev operator x", "line 1: it has 6 words"},
		{"an operator", "alice " + anyHash + " operator", ""},
		{"an operator twice", "alice " + anyHash + " operator operator", "line 1: behind its hash stands something else"},
		{"a name that is none", "al/ice " + anyHash, "line 1: its first word is not a name"},
		{"another algorithm", "alice md5:" + anyHash[7:], "line 1: its second word"},
		{"a short hash", "alice " + anyHash[:60], "line 1: its second word"},
		{"a long hash", "alice " + anyHash + "00", "line 1: its second word"},
		{"no hexadecimal hash", "alice " + anyHash[:70] + "x", "line 1: its second word"},
		{"no time", "alice " + anyHash + " expires=soon", "line 1: its expires= is not followed by a time"},
		{"the time that means never", "alice " + anyHash + " expires=0001-01-01T00:00:00Z", "line 1: its expires= is not followed by a time"},
		{"another key", "alice " + anyHash + " until=2027-01-31T00:00:00Z", "line 1: behind its hash stands something else"},
		{"groups", "alice " + anyHash + " groups=dev,ops", ""},
		{"groups and an end", "alice " + anyHash + " groups=dev expires=2027-01-31T00:00:00Z", ""},
		{"all servers", "alice " + anyHash + " groups=*", ""},
		{"all servers and a group", "alice " + anyHash + " groups=dev,*", "line 1: its groups are not names"},
		{"no group", "alice " + anyHash + " groups=", "line 1: its groups are not names"},
		{"a group without a name", "alice " + anyHash + " groups=dev,,ops", "line 1: its groups are not names"},
		{"a group that is no part of a path", "alice " + anyHash + " groups=../dev", "line 1: its groups are not names"},
		{"groups twice", "alice " + anyHash + " groups=dev groups=ops", "line 1: behind its hash stands something else"},
		{"many groups", "alice " + anyHash + " groups=a" + strings.Repeat(",b", maxGroups), "line 1: it has more than 64 groups"},
		{"twice the same", "alice " + anyHash + "\nbob " + anyHash, "line 2: this repeats the token of line 1"},
		{"a token", "alice mcsh_SECRET", "line 1: this line contains a token instead of its hash"},
		{"two mistakes", "alice\n" + strings.Repeat("x y\n", 20), "and 11 lines more"},
		{"too large", strings.Repeat("#\n", 1<<20), "larger than"},
	} {
		_, err := Parse([]byte(test.file))
		switch {
		case test.want == "" && err == nil:
		case test.want == "" || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "SECRET"):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestAddAndRemove: the rest of a file stays as people have written it.
func TestAddAndRemove(t *testing.T) {
	token, e, err := New("bob", time.Date(2027, 1, 31, 1, 2, 3, 4, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if len(token) != 48 || !strings.HasPrefix(token, "mcsh_") {
		t.Errorf("got a token of %d characters", len(token))
	}
	const before = "# people\nalice " + anyHash + " # the first"
	file := Add([]byte(before), e)
	if want := before + "\nbob sha256:"; !strings.HasPrefix(string(file), want) || !strings.HasSuffix(string(file), " expires=2027-01-31T01:02:03Z\n") {
		t.Errorf("got %s", file)
	}
	entries, err := Parse(file)
	if err != nil || len(entries) != 2 || entries[1] != e {
		t.Fatalf("got %+v, %v", entries, err)
	}
	if found, ok := find(entries, token); !ok || found != e {
		t.Errorf("the token is not found: %+v", found)
	}
	if _, ok := find(entries, token+"x"); ok {
		t.Error("another token is found")
	}
	if left, removed := Remove(file, "bob", "00000000"); len(removed) != 0 || string(left) != string(file) {
		t.Errorf("of another id: removed %v", removed)
	}
	if left, removed := Remove(file, "bob", e.ID()); len(removed) != 1 || string(left) != before+"\n" {
		t.Errorf("left is %q", left)
	}
	left, _ := Remove([]byte("alice "+anyHash), "alice", "")
	if entries, err := Parse(left); err != nil || len(entries) != 0 {
		t.Errorf("of the last one is left %q: %v", left, err)
	}
	if _, _, err := New("a b", time.Time{}); err == nil {
		t.Error("a name with a space is taken")
	}
}

// FuzzParse: no file makes it panic, and what is read is what would be written.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "#\n", "alice " + anyHash + "\n", "alice " + anyHash + " expires=2027-01-31T00:00:00+02:00", "alice mcsh_x", "a sha256:\x00", "\xff\n",
		"alice " + anyHash + " groups=ops,dev expires=2027-01-31T00:00:00Z", "alice " + anyHash + " groups=*",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		entries, err := Parse(file)
		if err != nil {
			if text := err.Error(); len(text) > 4000 {
				t.Errorf("an error of %d bytes", len(text))
			}
			return
		}
		var again []byte
		for _, e := range entries {
			again = append(again, e.line()...)
		}
		if len(entries) == 0 {
			return
		}
		back, err := Parse(again)
		if err != nil || len(back) != len(entries) {
			t.Fatalf("%q is written as %q: %v", file, again, err)
		}
		for i, e := range entries {
			if e.Name != back[i].Name || e.Groups != back[i].Groups || e.hash != back[i].hash || !e.Expires.Truncate(time.Second).Equal(back[i].Expires) {
				t.Errorf("%+v is read back as %+v", e, back[i])
			}
		}
		_, removed := Remove(file, entries[0].Name, "")
		if len(removed) == 0 {
			t.Errorf("%q cannot be removed from %q", entries[0].Name, file)
		}
	})
}
