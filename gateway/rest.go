package gateway

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// rest is where the whole of an output is that a reply does not hold.
type rest struct {
	run   string // empty: nothing is kept of runs
	bytes int64
	why   string // why it is not kept; empty: it is
}

// keptOutput finds the output of a run that has ended.
func keptOutput(runs stages.Runs, run string) rest {
	if run == "" {
		return rest{}
	}
	data, release, err := stages.OpenOutput(runs, run, 0)
	if err != nil {
		var why stages.Incomplete
		errors.As(err, &why)
		return rest{run: run, why: cmp.Or(string(why), asError(err).Msg)}
	}
	defer release()
	return rest{run: run, bytes: data.Size()}
}

// advice says what to do with an output that is too long.
func (r rest) advice() string {
	switch {
	case r.run == "":
		return "Reduce it with further stages (jq, head, grep ...) or raise max_output."
	case r.why != "":
		return fmt.Sprintf("It is not kept: %s. Reduce it with further stages (jq, head, grep ...).", r.why)
	}
	return fmt.Sprintf(`The whole is kept: begin with {"type": "from", "run": %q} and reduce it (jq, head, grep ...), or raise max_output.`, r.run)
}

// link is the block by which a client reads the whole.
func (r rest) link() []mcp.Content {
	if r.run == "" || r.why != "" {
		return nil
	}
	return []mcp.Content{&mcp.ResourceLink{
		URI: outputURI(r.run), Name: "output", Title: "The whole output", MIMEType: "text/plain", Size: &r.bytes,
		Description: fmt.Sprintf("%d bytes, readable in pages: ?offset=BYTES&limit=BYTES", r.bytes),
	}}
}
