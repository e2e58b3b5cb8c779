//go:build !race

package preview

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestScannerMutations breaks valid documents at random, which reaches more of the grammar than random bytes do.
func TestScannerMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const letters = "{}[]\",:\\u0123456789abcdefntr+-.eE \n\x00\x1f\x80\xc3\xa9\xff"
	for range parttest.Times(4000, 20_000) {
		doc := []byte(scanSeeds[rng.IntN(len(scanSeeds))] + scanSeeds[rng.IntN(len(scanSeeds))])
		if rng.IntN(2) == 0 {
			doc, _ = json.Marshal(randomValue(rng, 4))
		}
		for range rng.IntN(3) {
			if len(doc) == 0 {
				break
			}
			at := rng.IntN(len(doc))
			switch rng.IntN(3) {
			case 0:
				doc[at] = letters[rng.IntN(len(letters))]
			case 1:
				doc = append(doc[:at], doc[at+1:]...)
			default:
				doc = doc[:at]
			}
		}
		checkScan(t, doc)
	}
}

func TestScannerTokensAcrossBuffers(t *testing.T) {
	for _, size := range []int{0, 1, 7, 255, 256, 257, scanBuffer - 3, scanBuffer, scanBuffer + 1, 3 * scanBuffer} {
		for unit, char := range map[string]string{"x": "x", "é": "é", `\u00e9`: "é", `\ud83d\ude00`: "😀", `\"`: `"`, "\xff": "\ufffd"} {
			text, want := strings.Repeat(unit, size/len(unit)), strings.Repeat(char, size/len(unit))
			s := newScanner(strings.NewReader(strings.Repeat(" ", 5) + `{"` + text + `":["` + text + `",12]}`))
			var kinds []kind
			for {
				k, err := s.next()
				if err != nil {
					t.Fatalf("size %d of %q: %v", size, unit, err)
				}
				if k == tokEnd {
					break
				}
				kinds = append(kinds, k)
				if k == tokKey || k == kindString {
					if kept := want[:min(len(want), maxWhole)]; string(s.tok.text) != kept || s.tok.size != int64(len(want)) {
						t.Fatalf("size %d of %q: got %.50q, %d bytes of %d", size, unit, s.tok.text, len(s.tok.text), s.tok.size)
					}
					if len(want) > 0 && s.tok.last != want[len(want)-1] {
						t.Fatalf("size %d of %q: the last byte is %q", size, unit, s.tok.last)
					}
					if begin := s.tok.begin(); len(begin) < min(len(want), maxToken-3) || !utf8.Valid(begin) {
						t.Fatalf("size %d of %q: the beginning is %q", size, unit, begin)
					}
				}
			}
			wantKinds := []kind{kindObject, tokKey, kindArray, kindString, kindNumber, tokClose, tokClose}
			if diff := cmp.Diff(wantKinds, kinds); diff != "" {
				t.Fatalf("size %d of %q: kinds differ\n%s", size, unit, diff)
			}
		}
	}
}
