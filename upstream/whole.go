package upstream

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// whole returns the result of a call as the server has written it, if a client can read it. That of a tool that failed comes
// with its error, and without the secrets of the configuration.
func (sc *serverConn) whole(raw json.RawMessage, t *tool, lease *memory.Lease) (res stages.Result, err error) {
	label := toolLabel(sc.server.Name, t.Name)
	if size, most := int64(len(raw)), sc.pool.options.ResultMax; size > most {
		return res, stages.OverLimit("result", moreResult, "%s returned %d bytes, more than the limit of %d", label, size, most)
	}
	r, err := decodeResult(raw)
	if err == nil && r.IsError {
		if full := lease.Grow(2 * int64(len(raw))); full != nil {
			return res, noMemory(label, full)
		}
		raw = hideStrings(raw, sc.hide)
		r, err = decodeResult(bytes.Clone(raw)) // the text of the error is read in place
	}
	if err != nil {
		return res, invalid("a result", err)
	}
	blocks, err := decodeBlocks(r.Content)
	if err != nil {
		return res, invalid("content", err)
	}
	failed := r.refusal(raw, blocks)
	if failed != nil && !r.IsError {
		return res, failed
	}
	if raw = withContent(raw, blocks); !hasList(raw, "content") {
		return res, invalid("content", errLists)
	}
	return stages.Result{Data: raw, Memory: lease}, failed
}

// withContent is a result with a list of its content, which clients demand. Some servers leave it out, or send a bare string.
func withContent(raw json.RawMessage, blocks []block) json.RawMessage {
	if hasList(raw, "content") {
		return raw
	}
	var list [][]byte
	for _, b := range blocks {
		list = append(list, b.raw)
	}
	content := slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))
	rest := mapped(raw, func(name string, value []byte) []byte { return choose(name == "content", nil, value) })
	if len(rest) > len("{}") {
		content = append(content, ',')
	}
	return slices.Concat([]byte(`{"content":`), content, rest[1:])
}

// hideStrings hides secrets in all strings of JSON.
func hideStrings(raw []byte, hide func(string) string) []byte {
	out := make([]byte, 0, len(raw))
	for {
		begin := bytes.IndexByte(raw, '"')
		if begin < 0 {
			return append(out, raw...)
		}
		end := begin + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		out = append(out, raw[:begin]...)
		text := rpc.Text(raw[begin:end])
		if hidden := hide(text); hidden != text {
			out = append(out, texts.JSON(hidden)...)
		} else {
			out = append(out, raw[begin:end]...)
		}
		raw = raw[end:]
	}
}
