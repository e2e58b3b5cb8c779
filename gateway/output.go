package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// The output of a run is a resource. MCP has no ranges, so a query in its URI names the page.
const (
	outputScheme   = "mcsh"
	outputHost     = "runs"
	outputTemplate = "mcsh://runs/{run}/output{?offset,limit}"
	stageTemplate  = "mcsh://runs/{run}/stages/{stage}{?offset,limit}"

	pageSize = 64 << 10 // bytes of a page by default
	maxPage  = 4 << 20
)

// outputMethods are the protocol's methods to read outputs.
var outputMethods = []string{"resources/read", "resources/list", "resources/templates/list"}

// runsOf returns the runs of a caller, in the groups of the request. Over HTTP without authentication all callers share them: a
// run's id cannot be guessed and gives access to it, also after the end of its session.
func (g *Gateway) runsOf(extra *mcp.RequestExtra) stages.Runs {
	if g.o.Kept == nil {
		return nil
	}
	return g.o.Kept.Of(g.runsName(extra))
}

// offerOutputs adds the resources to the server. It does not list runs, since their ids give access to them.
func (g *Gateway) offerOutputs() {
	read := func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		_, end, err := g.begin(ctx, g.lookups, req.Extra)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		defer end()
		return g.readOutput(ctx, req)
	}
	const paged = " Readable in pages: offset and limit are bytes; _meta of a page names the next one."
	g.server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "output", Title: "Output of a run", URITemplate: outputTemplate,
		Description: "The whole output of a pipeline, byte for byte, for some time after the run." + paged,
	}, read)
	g.server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "stage", Title: "Output of a stage of a run", URITemplate: stageTemplate,
		Description: "What one stage of a pipeline produced." + paged,
	}, read)
}

func outputURI(run string) string { return outputScheme + "://" + outputHost + "/" + run + "/output" }

// page is a requested part of the output of a stage.
type page struct {
	uri           url.URL // without the query
	run           string
	stage         int // 0: the last
	offset, limit int64
}

// readOutput reads one page. A page of text ends between two characters.
func (g *Gateway) readOutput(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	p, err := parsePage(req.Params.URI)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	data, release, err := stages.OpenOutput(ctx, g.runsOf(req.Extra), p.run, p.stage)
	e, failed := errors.AsType[*stages.Error](err)
	switch {
	case failed && e.Code == stages.UnknownRun:
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	case err != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	defer release()
	if p.offset > data.Size() {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("offset %d is past the end: there are %d bytes", p.offset, data.Size())}
	}
	buf := make([]byte, min(p.limit, data.Size()-p.offset))
	if _, err := data.ReadAt(buf, p.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the output is gone: run the pipeline again"}
	}
	return p.result(req.Params.URI, buf, data.Size()), nil
}

// result returns the answer with the bytes at the page's offset in one block, and the next page in its _meta.
func (p page) result(uri string, buf []byte, size int64) *mcp.ReadResourceResult {
	if p.offset+int64(len(buf)) < size {
		buf = wholeCharacters(buf)
	}
	about := map[string]any{"offset": p.offset, "bytes": len(buf), "size": size}
	if next := p.offset + int64(len(buf)); next < size {
		about["next"] = fmt.Sprintf("%s?offset=%d&limit=%d", p.uri.String(), next, p.limit)
	}
	block := &mcp.ResourceContents{URI: uri, Meta: mcp.Meta{"mcsh/page": about}}
	if utf8.Valid(buf) {
		block.MIMEType, block.Text = "text/plain; charset=utf-8", string(buf)
	} else {
		block.MIMEType, block.Blob = "application/octet-stream", buf
	}
	// The default is public: a proxy could serve it to others.
	private := mcp.Cacheable{CacheScope: "private"}
	return &mcp.ReadResourceResult{Meta: mcp.Meta{"mcsh/page": about}, Cacheable: private, Contents: []*mcp.ResourceContents{block}}
}

// wholeCharacters cuts an incomplete character off the end of b, unless b has nothing else.
func wholeCharacters(b []byte) []byte {
	for back := 1; back < utf8.UTFMax && back < len(b); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at]
			}
			break
		}
	}
	return b
}

// parsePage reads a URI such as mcsh://runs/r_…/output?offset=65536&limit=65536.
func parsePage(text string) (page, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != outputScheme || u.Host != outputHost {
		return page{}, fmt.Errorf("write %s", outputTemplate)
	}
	p := page{limit: pageSize, uri: url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case len(parts) == 2 && parts[1] == "output":
	case len(parts) == 3 && parts[1] == "stages":
		if p.stage, err = strconv.Atoi(parts[2]); err != nil || p.stage < 1 {
			return page{}, fmt.Errorf("stage %q is not a positive number", shown(parts[2]))
		}
	default:
		return page{}, fmt.Errorf("write %s", outputTemplate)
	}
	p.run = parts[0]
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return page{}, fmt.Errorf("the query cannot be read: %w", err)
	}
	for name, values := range query {
		into := map[string]*int64{"offset": &p.offset, "limit": &p.limit}[name]
		if into == nil {
			return page{}, fmt.Errorf("unknown parameter %q: there are offset and limit, in bytes", shown(name))
		}
		if *into, err = strconv.ParseInt(values[0], 10, 64); err != nil || *into < 0 {
			return page{}, fmt.Errorf("%s %q is not a number of bytes", name, shown(values[0]))
		}
	}
	if p.limit < utf8.UTFMax || p.limit > maxPage {
		return page{}, fmt.Errorf("limit %d is not between %d and %d bytes", p.limit, utf8.UTFMax, maxPage)
	}
	return p, nil
}

// fullOutput locates an output that a reply only previews.
type fullOutput struct {
	run   string // empty: the gateway keeps no runs
	bytes int64
	why   string // the reason that it is not kept; empty: it is
}

// keptOutput finds the output of an ended run.
func keptOutput(ctx context.Context, runs stages.Runs, run string) fullOutput {
	if run == "" {
		return fullOutput{}
	}
	data, release, err := stages.OpenOutput(ctx, runs, run, 0)
	if err != nil {
		why, _ := errors.AsType[stages.Incomplete](err)
		return fullOutput{run: run, why: cmp.Or(string(why), stages.AsError(err).Msg)}
	}
	defer release()
	return fullOutput{run: run, bytes: data.Size()}
}

// advice says how to read an output that is too long.
func (r fullOutput) advice() string {
	switch {
	case r.run == "":
		return "Reduce it with further stages (jq, head, grep ...) or raise max_output."
	case r.why != "":
		return fmt.Sprintf("It is not kept: %s. Reduce it with further stages (jq, head, grep ...).", r.why)
	}
	return fmt.Sprintf(`The whole is kept: begin with {"type": "from", "run": %q} and reduce it (jq, head, grep ...), or raise max_output.`, r.run)
}

// link returns the resource link to the output.
func (r fullOutput) link() []mcp.Content {
	if r.run == "" || r.why != "" {
		return nil
	}
	return []mcp.Content{&mcp.ResourceLink{
		URI: outputURI(r.run), Name: "output", Title: "The whole output", MIMEType: "text/plain", Size: &r.bytes,
		Description: fmt.Sprintf("%d bytes, readable in pages: ?offset=BYTES&limit=BYTES", r.bytes),
	}}
}
