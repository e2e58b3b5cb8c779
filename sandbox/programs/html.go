package programs

import (
	"context"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/internal/markdown"
)

// HTML is the name of the program that converts a page to Markdown. Its only argument is the address of the page.
const HTML = "html2md"

// Internal returns the programs that the gateway runs for itself. No stage can name them, so they have no options.
func Internal() []Program { return []Program{{Name: HTML, Ready: readyHTML}} }

func readyHTML(args []string, _ Inputs) (Runner, Verdict) {
	return func(_ context.Context, files IO) int {
		page, err := io.ReadAll(files.In)
		if err != nil {
			fmt.Fprintln(files.Err, err)
			return 2
		}
		text, err := markdown.Convert(string(page), args[len(args)-1])
		if err != nil {
			fmt.Fprintln(files.Err, err)
			return 1
		}
		if _, err := io.WriteString(files.Out, text); err != nil {
			return 2
		}
		return 0
	}, Verdict{}
}
