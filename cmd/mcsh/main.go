// Command mcsh is a gateway in front of MCP servers. It runs whole pipelines of tool calls and commands and returns only
// their end. The program is in package cli.
package main

import "github.com/mcsh-dev/mcsh/cli"

func main() { cli.Main(nil) }
