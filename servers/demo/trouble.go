package demo

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

type server struct {
	shop  *shop
	notes notes
	seed  uint64

	mu     sync.Mutex // guards chance
	chance *rand.Rand
}

type slowArgs struct {
	MS int64 `json:"ms"`
}

func (s *server) slow() tool.Tool {
	return tool.Tool{
		Name:        "slow",
		Description: "Waits, then answers {waited_ms}. A call that is cancelled ends at once.",
		Input: `{
  "type": "object",
  "properties": {"ms": {"type": "integer", "minimum": 0, "maximum": 60000, "description": "How long, in milliseconds."}},
  "required": ["ms"],
  "additionalProperties": false
}`,
		Annotations: tool.ReadOnly(false),
		Call: tool.New(func(ctx context.Context, a slowArgs) (*mcp.CallToolResult, error) {
			if a.MS < 0 || a.MS > longestWait.Milliseconds() {
				return nil, invalid("ms is %d, want 0 to %d", a.MS, longestWait.Milliseconds())
			}
			if err := pausing.For(ctx, time.Duration(a.MS)*time.Millisecond); err != nil {
				return nil, err
			}
			return tool.JSON(map[string]int64{"waited_ms": a.MS})
		}),
	}
}

type flakyArgs struct {
	P    float64 `json:"p"`
	Seed *int64  `json:"seed"`
}

func (s *server) flaky() tool.Tool {
	return tool.Tool{
		Name: "flaky",
		Description: "Fails with a probability, else answers {ok: true}. With a seed, the outcome is the same for every call; " +
			"without, every call draws anew, so that trying again helps.",
		Input: `{
  "type": "object",
  "properties": {
    "p": {"type": "number", "minimum": 0, "maximum": 1, "description": "The probability of failure."},
    "seed": {"type": "integer", "description": "Decides the outcome together with p."}
  },
  "required": ["p"],
  "additionalProperties": false
}`,
		Annotations: tool.ReadOnly(false),
		Call: tool.New(func(_ context.Context, a flakyArgs) (*mcp.CallToolResult, error) {
			if a.P < 0 || a.P > 1 {
				return nil, invalid("p is %v, want 0 to 1", a.P)
			}
			if s.draw(a.Seed) < a.P {
				return nil, &tool.Error{Kind: "Unavailable", Msg: fmt.Sprintf("503 service unavailable (with probability %v)", a.P), Hint: "call again"}
			}
			return tool.JSON(map[string]bool{"ok": true})
		}),
	}
}

// draw returns a number in [0, 1): by the seed, or the next of the server's own sequence.
func (s *server) draw(seed *int64) float64 {
	if seed != nil {
		return rand.New(rand.NewPCG(s.seed, uint64(*seed))).Float64()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.Float64()
}

func (s *server) picture() tool.Tool {
	return tool.Tool{
		Name:        "picture",
		Description: "Returns a small PNG image.",
		Input:       `{"type": "object", "properties": {}, "additionalProperties": false}`,
		Annotations: tool.ReadOnly(false),
		Call: tool.New(func(context.Context, struct{}) (*mcp.CallToolResult, error) {
			data, err := paint()
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: data, MIMEType: "image/png"}}}, nil
		}),
	}
}

// paint draws a disc on a gradient.
func paint() ([]byte, error) {
	const side, radius = 64, 20
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			c := color.RGBA{R: uint8(x * 4), G: uint8(y * 4), B: 128, A: 255}
			if dx, dy := x-side/2, y-side/2; dx*dx+dy*dy < radius*radius {
				c = color.RGBA{R: 255, G: 255, B: 255, A: 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, fmt.Errorf("encoding the picture: %w", err)
	}
	return b.Bytes(), nil
}
