package stdio

import (
	"strings"
	"testing"
)

// TestOldNode: the words of npm, of servers and of Node.js itself where it is too old are known, and others are not taken
// for them.
func TestOldNode(t *testing.T) {
	for _, tt := range []struct{ stderr, want string }{
		{"npm error code EBADENGINE\nnpm error notsup Required: {\"node\":\">=22.0.0\"}\nnpm error notsup Actual:   {\"npm\":\"10.8.2\",\"node\":\"v20.18.1\"}\n", "than v20.18.1, which runs it (it wants >=22.0.0)"},
		{"npm WARN EBADENGINE Unsupported engine {\nnpm WARN EBADENGINE   required: { node: '>=18.19' },\nnpm WARN EBADENGINE   current: { node: 'v18.16.1', npm: '9.5.1' }\nnpm WARN EBADENGINE }\nRangeError: x\n\nNode.js v18.16.1\n", "than v18.16.1, which runs it (it wants >=18.19)"},
		{"ERROR: `chrome-devtools-mcp` does not support Node v20.11.0. Please upgrade to Node 20.19.0 LTS or a newer LTS.\n", "than v20.11.0, which runs it:"},
		{"file:///a.mjs:1\nimport {globSync} from 'node:fs'\n        ^\nSyntaxError: The requested module 'node:fs' does not provide an export named 'globSync'\n    at x\n\nNode.js v20.20.2\n", "than v20.20.2, which runs it:"},
		{"TypeError: Promise.withResolvers is not a function\n\nNode.js v20.20.2\n", "than v20.20.2"},
		{"ReferenceError: File is not defined\n\nNode.js v18.19.0\n", "than v18.19.0"},
		{"index.js:8\nimport { McpServer } from \"x\";\n       ^\nSyntaxError: Unexpected token {\n", "than the one that runs it:"},
		{"Error: Cannot find module 'express'\n\nNode.js v20.20.2\n", ""},
		{"TypeError: server.start is not a function\n\nNode.js v20.20.2\n", ""},
		{"Error: GITHUB_TOKEN not set\n", ""},
		{"npm warn EBADENGINE   required: { node: '>=22' },\nnpm warn EBADENGINE   current: { node: 'v20.1.0', npm: '9' }\nError: GITHUB_TOKEN not set\n", ""},
		{"SyntaxError: Unexpected token 'a', \"abc\" is not valid JSON\n\nNode.js v20.20.2\n", ""},
		{"SyntaxError: Unexpected token a in JSON at position 0\n\nNode.js v20.20.2\n", ""},
		{"SyntaxError: Unexpected end of JSON input\n\nNode.js v20.20.2\n", ""},
	} {
		if got := oldNode(tt.stderr); (got != "") != (tt.want != "") || !strings.Contains(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.stderr, got, tt.want)
		}
	}
}
