package preview

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// secretWords in a key hide its values.
var secretWords = []string{
	"token", "secret", "password", "passwd", "authorization", "api_key", "apikey", "api-key", "cookie",
	"private_key", "privatekey", "credential",
}

// harmlessKey matches keys that lead to the next page of a list, or count the tokens of a language model.
var harmlessKey = lazy.Regexp(`(?s)(?:page|next|continu|cursor|sync|start).*token$|` +
	`(?:input|output|total|max|min|prompt|completion|cached|reasoning|num|thinking)[_ -]*tokens$`)

func isSecret(key string) bool {
	key = strings.ToLower(key)
	if strings.HasSuffix(strings.TrimSuffix(key, "s"), "token") && harmlessKey().MatchString(strings.Clone(key)) {
		return false
	}
	return containsAny(key, secretWords)
}

func containsAny(key string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(key, w) })
}

// secretText matches a secret in a line of text: the value after a key with a secret word, and a colon or equals sign.
var secretText = lazy.Regexp(`(?i)([\w.-]*(?:token|secret|password|passwd|authorization|api[_-]?key|cookie|private[_-]?key|credential)[\w.-]*["']?\s*[:=]\s*)` +
	`((?:(?:bearer|basic)\s+)?(?:"[^"]*"?|'[^']*'?|[^\s,;&]+))`)

const masked = "(masked)"

func maskText(line string) string {
	return secretText().ReplaceAllString(line, "${1}"+masked)
}
