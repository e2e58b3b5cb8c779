package sessions

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestParams: requests at the same time share what all of them say, and none changes it.
func TestParams(t *testing.T) {
	s := &Session{hops: "hops"}
	var wg sync.WaitGroup
	for size := range 64 { // some have room behind their bytes
		name := fmt.Sprintf("%0*d", size+1, 0)
		s.Meta = RequestMeta(NewVersion, &mcp.Implementation{Name: name})
		for token := range int64(4) {
			wg.Go(func() {
				var got struct {
					Name string
					Meta struct {
						Client struct{ Name string } `json:"io.modelcontextprotocol/clientInfo"`
						Token  int64                 `json:"progressToken"`
						Hops   int
						Parent string `json:"traceparent"`
					} `json:"_meta"`
				}
				params := s.Params(stages.Trace{Parent: "p", Hops: 2}, token, []byte(`"name":"x"`))
				if err := json.Unmarshal(params, &got); err != nil {
					t.Errorf("%s: %v", params, err)
				}
				m := got.Meta
				if got.Name != "x" || m.Client.Name != name || m.Token != token || m.Hops != 3 || m.Parent != "p" {
					t.Errorf("got %s", params)
				}
			})
		}
		wg.Wait()
	}
}
