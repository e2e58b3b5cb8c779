package main

import (
	"os"

	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

func main() { os.Exit(worker.Main(os.Args[1:], worker.Options{})) }
