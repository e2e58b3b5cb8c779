package preview

import (
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// secretWords in a key mean that its values are not shown.
var secretWords = []string{
	"token", "secret", "password", "passwd", "authorization", "api_key", "apikey", "api-key", "cookie",
	"private_key", "privatekey", "credential",
}

// countedTokens are what comes before "tokens" in keys that count the words of a language model.
var countedTokens = []string{"input", "output", "total", "max", "min", "prompt", "completion", "cached", "reasoning", "num", "thinking"}

// pageTokens are what tokens that lead to the next page of a list are called.
var pageTokens = []string{"page", "next", "continu", "cursor", "sync", "start"}

func isSecret(key string) bool {
	key = strings.ToLower(key)
	if before, ok := strings.CutSuffix(key, "token"); ok {
		for _, w := range pageTokens {
			if strings.Contains(before, w) {
				return false
			}
		}
	}
	if before, ok := strings.CutSuffix(key, "tokens"); ok {
		before = strings.TrimRight(before, "_- ")
		for _, w := range countedTokens {
			if strings.HasSuffix(before, w) {
				return false
			}
		}
	}
	for _, w := range secretWords {
		if strings.Contains(key, w) {
			return true
		}
	}
	return false
}

// secretText finds secrets in a line of text: what follows a key with one of the words and a colon or equals sign.
var secretText = lazy.Regexp(`(?i)([\w.-]*(?:token|secret|password|passwd|authorization|api[_-]?key|cookie|private[_-]?key|credential)[\w.-]*["']?\s*[:=]\s*)` +
	`((?:(?:bearer|basic)\s+)?(?:"[^"]*"?|'[^']*'?|[^\s,;&]+))`)

const masked = "(masked)"

func maskText(line string) string {
	return secretText().ReplaceAllString(line, "${1}"+masked)
}
