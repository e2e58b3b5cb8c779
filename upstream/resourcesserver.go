package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// ResourcesServer is the name of the server with the tools that read and list the resources of all others, for pipelines.
const ResourcesServer = "resources"

// reserved are the names that no other server may have.
var reserved = []string{ResourcesServer, "pipelines"}

// IsReserved reports whether no other server may have a name.
func IsReserved(name string) bool { return slices.Contains(reserved, name) }

// resourcesTools are its tools.
var resourcesTools = []struct {
	name, description, schema string
	answer                    func(*Pool, context.Context, stages.Call) (stages.Result, error)
}{
	{
		"read", "Reads a resource of a server. A text comes as it is; several contents, or a blob (base64), as one JSON object each.",
		`{"type":"object","properties":{"uri":{"type":"string","description":"as the server has it, or mcsh://servers/NAME/URI"},` +
			`"server":{"type":"string","description":"whose resource it is; only needed where that is not known"}},"required":["uri"],"additionalProperties":false}`,
		(*Pool).answerRead,
	},
	{
		"list", "Lists the resources of all servers, as far as they are known, or of one.",
		`{"type":"object","properties":{"server":{"type":"string"},"templates":{"type":"boolean","description":"list the templates of URIs"}},"additionalProperties":false}`,
		(*Pool).answerList,
	},
}

// resourcesServer describes the server. The pool answers its calls, so results stay exact and take their memory once.
func (p *Pool) resourcesServer() *Server {
	s := mcp.NewServer(&mcp.Implementation{Name: ResourcesServer, Version: p.options.ClientVersion}, nil)
	answers := map[string]func(*Pool, context.Context, stages.Call) (stages.Result, error){}
	for _, t := range resourcesTools {
		answers[t.name] = t.answer
		s.AddTool(&mcp.Tool{
			Name: t.name, Description: t.description, InputSchema: json.RawMessage(t.schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("the pool answers its calls")
		})
	}
	answer := func(ctx context.Context, call stages.Call) (stages.Result, error) {
		return answers[call.Name](p, ctx, call)
	}
	return &Server{Name: ResourcesServer, Dial: InProcess(s, nil, nil), InProcess: true, answer: answer}
}

// hasResources reports whether any server that the view of ctx shows is known to have resources or templates.
func (p *Pool) hasResources(ctx context.Context) bool {
	return slices.ContainsFunc(p.shown(ctx), func(sc *serverConn) bool {
		lists := sc.offers.current()
		return lists != nil && len(lists.of[Resources])+len(lists.of[Templates]) > 0
	})
}

// answerRead answers a call of read.
func (p *Pool) answerRead(ctx context.Context, call stages.Call) (stages.Result, error) {
	var args struct{ URI, Server string }
	if err := json.Unmarshal(call.Args, &args); err != nil || args.URI == "" {
		return stages.Result{}, stages.Errorf(stages.InvalidArguments, `give {"uri": "..."}`, "the arguments of read name no uri")
	}
	call.Server, call.Name = args.Server, args.URI
	c, err := p.Read(ctx, call)
	if err != nil {
		return stages.Result{}, err
	}
	res, err := results.OfResource(c.Result, c.outwards())
	if more := int64(len(res.Data)); err == nil && more > 0 {
		for _, block := range res.Blocks {
			more += int64(len(block))
		}
		if full := c.Memory.Grow(more); full != nil {
			err = results.NoMemory("reading a resource", full)
		}
	}
	if err != nil {
		c.Memory.Close()
		return stages.Result{}, err
	}
	res.Memory = c.Memory
	return res, nil
}

// answerList answers a call of list: one array of what is listed, each with the name of its server.
func (p *Pool) answerList(ctx context.Context, call stages.Call) (stages.Result, error) {
	var args struct {
		Server    string
		Templates bool
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return stages.Result{}, stages.Errorf(stages.InvalidArguments, `give {} or {"server": "..."}`, "the arguments of list cannot be read")
	}
	if call.MaySend != nil && !call.MaySend() {
		<-ctx.Done()
		return stages.Result{}, ctx.Err()
	}
	kind := choose(args.Templates, Templates, Resources)
	list := p.Offers(ctx, kind)
	if args.Server != "" {
		var err error
		if list, err = p.OffersOf(ctx, args.Server, kind); err != nil {
			return stages.Result{}, err
		}
	}
	lease := p.options.Results.Lease()
	var out bytes.Buffer
	out.WriteByte('[')
	for i, offer := range list {
		if i > 0 {
			out.WriteString(",\n")
		}
		others := rpc.Without(offer.Raw, func(name string) bool { return name == "server" })
		out.Write(rpc.Prepend(others, `"server":`+texts.JSON(offer.Server)))
	}
	out.WriteByte(']')
	if err := lease.Grow(int64(out.Cap())); err != nil {
		lease.Close()
		return stages.Result{}, results.NoMemory("listing resources", err)
	}
	return stages.Result{Data: out.Bytes(), Kind: stages.Values, Memory: lease}, nil
}
