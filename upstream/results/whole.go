package results

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Whole returns the result of a call as the server has written it, if a client can read it. That of a tool that failed comes
// with its error, and without what hide hides.
func Whole(raw json.RawMessage, label string, lease *memory.Lease, hide func(string) string) (res stages.Result, err error) {
	r, err := decodeResult(raw)
	if err == nil && r.IsError {
		if full := lease.Grow(2 * int64(len(raw))); full != nil {
			return res, NoMemory(label, full)
		}
		raw = hideStrings(raw, hide)
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
	if raw = withContent(raw, blocks); !rpc.HasList(raw, "content") {
		return res, invalid("content", errors.New("it is not a list"))
	}
	return stages.Result{Data: raw, Memory: lease}, failed
}

// withContent is a result with a list of its content, which clients demand. Some servers leave it out, or send a bare string.
func withContent(raw json.RawMessage, blocks []block) json.RawMessage {
	if rpc.HasList(raw, "content") {
		return raw
	}
	var list [][]byte
	for _, b := range blocks {
		list = append(list, b.raw)
	}
	rest := rpc.Without(raw, func(name string) bool { return name == "content" })
	return rpc.Prepend(rest, `"content":[`+string(bytes.Join(list, []byte(",")))+"]")
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
