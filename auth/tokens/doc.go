// Package tokens verifies tokens by a file with a name and a hash on each line. It follows changes of the file, and knows
// nothing of HTTP.
package tokens
