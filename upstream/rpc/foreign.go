package rpc

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Foreign makes a transport of one that was made elsewhere, whose connection decodes messages itself.
func Foreign(t mcp.Transport) *Transport {
	return &Transport{Open: func(ctx context.Context) (Wire, error) {
		c, err := t.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return foreign{c}, nil
	}}
}

type foreign struct{ conn mcp.Connection }

func (f foreign) Next() ([]byte, error) {
	msg, err := f.conn.Read(context.Background())
	if err != nil {
		return nil, err
	}
	return jsonrpc.EncodeMessage(msg)
}

func (f foreign) Send(ctx context.Context, b []byte) error {
	msg, err := jsonrpc.DecodeMessage(b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return f.conn.Write(ctx, msg)
}

func (f foreign) Close() error { return f.conn.Close() }
