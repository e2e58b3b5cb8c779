package gateway

import (
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

// What a run produced is a resource, read in pages: MCP has no ranges, so that they stand in the query.
const (
	outputScheme   = "mcsh"
	outputHost     = "runs"
	outputTemplate = "mcsh://runs/{run}/output{?offset,limit}"
	stageTemplate  = "mcsh://runs/{run}/stages/{stage}{?offset,limit}"

	pageSize = 64 << 10 // bytes of a page where the reader does not say
	maxPage  = 4 << 20
)

// outputMethods are those of the protocol that outputs are read with.
var outputMethods = []string{"resources/read", "resources/list", "resources/templates/list"}

// runsOf returns the runs of a caller of the gateway. Where nobody is asked who they are over HTTP, the id of a run, which
// cannot be guessed, is what lets one have it, also when the session that it was made in has ended.
func (g *Gateway) runsOf(extra *mcp.RequestExtra) stages.Runs {
	if g.o.Kept == nil {
		return nil
	}
	if extra == nil || extra.Header == nil {
		return g.o.Kept.Of(callerStdio)
	}
	if user := extraUser(extra); user != "" {
		return g.o.Kept.Of(callerUser + user)
	}
	return g.o.Kept.Of(callerAnonymous)
}

// offerOutputs adds the resource to the server. They are not listed: who has made a run has been told its id, and
// nobody else may learn it.
func (g *Gateway) offerOutputs() {
	read := func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		caller := callerAnonymous
		if user := extraUser(req.Extra); user != "" {
			caller = callerUser + user
		}
		_, end, err := g.begin(ctx, g.looks, caller)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		defer end()
		return g.readOutput(req)
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

// page is a part of the output of a stage that somebody wants to read.
type page struct {
	uri           url.URL // without the query
	run           string
	stage         int // 0: the last
	offset, limit int64
}

// readOutput reads one page. A page of text ends between two characters.
func (g *Gateway) readOutput(req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	p, err := parsePage(req.Params.URI)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	data, release, err := stages.OpenOutput(g.runsOf(req.Extra), p.run, p.stage)
	var e *stages.Error
	switch {
	case errors.As(err, &e) && e.Code == stages.UnknownRun:
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	case err != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	defer release()
	if p.offset > data.Size() {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("offset %d is behind the end: there are %d bytes", p.offset, data.Size())}
	}
	buf := make([]byte, min(p.limit, data.Size()-p.offset))
	if _, err := data.ReadAt(buf, p.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the output cannot be read any more: run the pipeline again"}
	}
	return p.result(req.Params.URI, buf, data.Size()), nil
}

// result makes the answer of the bytes at the page's offset. All that is of the page stands in one block; where it goes
// on stands beside it.
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
	// What nobody says is public: a proxy could give it to others.
	private := mcp.Cacheable{CacheScope: "private"}
	return &mcp.ReadResourceResult{Meta: mcp.Meta{"mcsh/page": about}, Cacheable: private, Contents: []*mcp.ResourceContents{block}}
}

// wholeCharacters returns b without the beginning of a character at its end, if it has more than that.
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
			return page{}, fmt.Errorf("stage %q is no number from 1 on", shown(parts[2]))
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
			return page{}, fmt.Errorf("%s %q is no number of bytes", name, shown(values[0]))
		}
	}
	if p.limit < utf8.UTFMax || p.limit > maxPage {
		return page{}, fmt.Errorf("limit %d is not between %d and %d bytes", p.limit, utf8.UTFMax, maxPage)
	}
	return p, nil
}
