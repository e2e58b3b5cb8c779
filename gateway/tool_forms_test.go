package gateway

import "testing"

// TestSentences: a point ends a sentence behind a word only, and points that stand alone stay.
func TestSentences(t *testing.T) {
	for _, tt := range []struct{ description, want string }{
		{"Lists orders. More words.", " - Lists orders. More words"},
		{"Lists all the open orders:\nby day", " - Lists all the open orders. by day"},
		{"Wait for it... Then more.", " - Wait for it. Then more"},
		{"With jq, all files: .. | objects | .name. The rest.", " - With jq, all files: .. | objects | .name. The rest"},
		{"With jq, all files: ..\nThe rest", " - With jq, all files: ... The rest"},
		{"With jq, write ..", " - With jq, write .."},
		{".. is all", " - .. is all"},
		{"...", ""},
	} {
		if got := (richness{long: true, description: 100}).sentences(tt.description); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.description, got, tt.want)
		}
	}
	if first, rest := firstSentence("All files: .. | objects. The rest."); first != "All files: .. | objects." || rest != " The rest." {
		t.Errorf("got %q and %q", first, rest)
	}
}
