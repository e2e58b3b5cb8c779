// Package tokens keeps who may come in by a token in a file: a name and a hash per line. It follows the file while it is
// served from, and knows nothing of HTTP.
package tokens
